"""The backend "ddl" of torch.distributed: every function, and DistributedDataParallel."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ddl.torch.process_group as process_group
from harness import raises, run
from optimizer_program import loss_of, model  # the same small model


def setup():
    os.environ.setdefault("USE_LIBUV", "0")  # Debian 13 has built PyTorch without libuv
    dist.init_process_group("ddl")
    return dist.get_rank(), dist.get_world_size()


rank, ranks = setup()


def mine(count=4):
    return torch.arange(count, dtype=torch.float32) + 100 * rank


def of(other, count=4):
    return torch.arange(count, dtype=torch.float32) + 100 * other


def test_backend():
    assert dist.get_backend() == "ddl" and rank == int(os.environ["RANK"])


def test_reductions():
    for op, wanted in (
        (dist.ReduceOp.SUM, ranks * (ranks + 1) / 2),
        (dist.ReduceOp.MAX, ranks),
        (dist.ReduceOp.MIN, 1),
        (dist.ReduceOp.AVG, (ranks + 1) / 2),
    ):
        tensor = torch.full((3, 2), rank + 1.0)
        dist.all_reduce(tensor, op=op)
        assert torch.allclose(tensor, torch.full((3, 2), float(wanted))), op
    bits = torch.tensor([1 << rank])
    dist.all_reduce(bits, op=dist.ReduceOp.BOR)
    assert bits.item() == (1 << ranks) - 1
    strided = torch.ones(3, 4).t()
    dist.all_reduce(strided)
    assert (strided == ranks).all()
    works = [dist.all_reduce(torch.ones(10), async_op=True) for _ in range(20)]
    assert all(work.wait() for work in works) and works[0].is_completed() and works[0].result()[0][0] == ranks
    tensor = mine()
    dist.reduce(tensor, dst=ranks - 1)
    if rank == ranks - 1:
        assert torch.equal(tensor, sum(of(one) for one in range(ranks)))
    inputs, output = [of(rank) * (one + 1) for one in range(ranks)], torch.empty(4)
    dist.reduce_scatter(output, inputs)
    assert torch.equal(output, sum(of(one) for one in range(ranks)) * (rank + 1))


def test_moves():
    tensor = mine()
    dist.broadcast(tensor, src=ranks - 1)
    assert torch.equal(tensor, of(ranks - 1))
    outputs = [torch.empty(4) for _ in range(ranks)]
    dist.all_gather(outputs, mine())
    assert all(torch.equal(output, of(one)) for one, output in enumerate(outputs))
    dist.gather(mine(), outputs if rank == 0 else None, dst=0)
    part = torch.empty(4)
    dist.scatter(part, [of(one) + rank for one in range(ranks)] if rank == 0 else None, src=0)
    assert torch.equal(part, of(rank))
    exchanged = torch.empty(ranks, 2)
    dist.all_to_all_single(exchanged, torch.full((ranks, 2), float(rank)))
    assert exchanged[:, 0].tolist() == list(range(ranks))
    lists = [torch.empty(one + 1) for one in range(ranks)]
    dist.all_to_all(lists, [torch.full((rank + 1,), float(rank))] * ranks)
    assert all((part == one).all() for one, part in enumerate(lists))
    if ranks > 1 and rank < 2:
        tensor = mine()
        dist.send(tensor, 1) if rank == 0 else dist.recv(tensor, 0)
        assert torch.equal(tensor, of(0))
        turned = torch.arange(1.0, 7.0).view(2, 3).t()
        tensor = turned if rank == 0 else turned * 0
        dist.send(tensor, 1) if rank == 0 else dist.recv(tensor, 0)
        assert not tensor.is_contiguous() and torch.equal(tensor, turned)
    dist.barrier()
    objects = [None] * ranks
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": one} for one in range(ranks)]
    with raises(ValueError, "there is no sum of bool"):
        dist.all_reduce(torch.ones(2, dtype=torch.bool))


def test_groups_of_some_ranks():
    group = dist.new_group([0])
    if rank == 0:
        tensor = torch.ones(1)
        dist.all_reduce(tensor, group=group)
        assert tensor.item() == 1


def trained(hook=None, group=None):
    net = DistributedDataParallel(model(), process_group=group)
    if hook is not None:
        net.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        loss_of(net, own_share_of()).backward()
        optimizer.step()
    return net


def own_share_of():
    return slice(rank, None, ranks)


def test_ddp_trains_as_one_process():
    alone = model()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        loss_of(alone).backward()
        optimizer.step()
    for net in (trained(), trained(process_group.average_by_ddl)):
        difference = max((a - b).abs().max().item() for a, b in zip(net.parameters(), alone.parameters()))
        assert difference < 1e-5, difference


def test_end():
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    run(globals(), rank)
