"""What ddl.torch.training has: samples, learning rates, means, checkpoints."""
import os
import shutil
import tempfile

import torch

import ddl
import ddl.torch as hvd
from ddl.torch import training
from harness import raises, run

hvd.init()


def everyone(sampler):
    return sorted(one for share in hvd.allgather_object(list(sampler)) for one in share)


def test_each_sample_is_one_ranks():
    for length in (0, 1, 2, 7, 12, 101):
        sampler = training.DistributedSampler(range(length))
        assert everyone(sampler) == list(range(length))
        assert len(list(sampler)) == len(sampler)
    sampler = training.DistributedSampler(range(100), seed=3)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first
    sampler.set_epoch(0)
    assert list(sampler) == first
    assert list(training.DistributedSampler(range(9), shuffle=False)) == list(range(hvd.rank(), 9, hvd.size()))


def test_an_epoch_goes_on():
    sampler = training.DistributedSampler(range(50))
    sampler.set_epoch(4)
    had = list(sampler)[:3]
    sampler.record(3)
    again = training.DistributedSampler(range(50))
    again.load_state_dict(sampler.state_dict())
    rest = list(again)
    assert not set(had) & set(rest)
    shares = hvd.allgather_object(had + rest)
    assert sorted(one for share in shares for one in share) == list(range(50))


def test_metrics():
    means = training.average_metrics({"loss": float(hvd.rank()), "accuracy": 1.0})
    assert means == {"loss": (hvd.size() - 1) / 2, "accuracy": 1.0}
    assert training.average_metrics({}) == {}


def test_learning_rates():
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.8, momentum=0.9)
    schedule = training.LearningRateSchedule(optimizer, training.warmup(4, size=8))
    group = optimizer.param_groups[0]
    schedule.step(0)
    assert abs(group["lr"] - 0.1) < 1e-9 and group["momentum"] == 0.9  # PyTorch's velocity has no rate in it
    group["lr"] = 0.8
    schedule = training.LearningRateSchedule(optimizer, training.warmup(4, size=8), momentum_correction=True)
    schedule.step(0)
    assert abs(group["lr"] - 0.1) < 1e-9 and abs(group["momentum"] - 0.9 / 8) < 1e-9
    schedule.step(0)
    assert abs(group["lr"] - 0.1) < 1e-9 and group["momentum"] == 0.9
    schedule.step(2)
    assert abs(group["lr"] - 0.45) < 1e-9
    schedule.step(4)
    schedule.step(9)
    assert group["lr"] == 0.8 and group["momentum"] == 0.9


def test_checkpoints():
    folder = hvd.broadcast_object(tempfile.mkdtemp() if hvd.rank() == 0 else None)
    path = os.path.join(folder, "state.pt")
    assert training.load_checkpoint(path) is None
    net = torch.nn.Linear(2, 1)
    training.start_alike(net, torch.optim.Adam(net.parameters()))
    training.save_checkpoint(path, {"net": net.state_dict(), "epoch": 3})
    loaded = training.load_checkpoint(path)
    assert loaded["epoch"] == 3 and torch.equal(loaded["net"]["weight"], net.weight)
    if hvd.rank() == 0:
        with raises(Exception):
            training.save_checkpoint(path, lambda: None)  # cannot be pickled
        assert os.listdir(folder) == ["state.pt"]
        with open(path, "w") as file:
            file.write("damaged")
    hvd.barrier()
    with raises(RuntimeError, "is no checkpoint"):
        training.load_checkpoint(path)
    hvd.barrier()
    if hvd.rank() == 0:
        shutil.rmtree(folder)


if __name__ == "__main__":
    run(globals(), ddl.rank())
