"""ddl.torch, by what Horovod's own tests look at."""
import os
import warnings

import torch

import ddl.torch as hvd
from harness import raises, run

FLOATS = (torch.float16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int32, torch.int64)


def model(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def batch(share=slice(None)):
    torch.manual_seed(2)
    inputs = torch.rand(12, 3)
    return inputs[share], inputs.sum(dim=1, keepdim=True)[share]


def loss_of(net, share=slice(None)):
    inputs, targets = batch(share)
    return (net(inputs) - targets).pow(2).mean()


def own_share():
    return slice(hvd.rank(), None, hvd.size())


def same_everywhere(net):
    all_values = hvd.allgather_object([p.detach().clone() for p in net.parameters()])
    return all(torch.equal(a, b) for one in all_values for a, b in zip(one, all_values[0]))


def test_before_init():
    with raises(ValueError, "has not been initialised"):
        hvd.rank()
    with raises(ValueError, "has not been initialised"):
        hvd.allreduce(torch.ones(1))


def test_init():
    hvd.init()
    hvd.init()
    assert hvd.is_initialized() and hvd.size() == int(os.environ["WORLD_SIZE"])
    assert hvd.global_process_set.ranks == list(range(hvd.size())) and hvd.global_process_set.process_set_id == 0
    assert not hvd.ddl_built() and hvd.gloo_built() and hvd.nccl_built() in (0, 1)


def test_allreduce():
    ranks, total = hvd.size(), hvd.size() * (hvd.size() - 1) // 2
    for dtype in FLOATS + INTEGERS + (torch.bfloat16,):
        tensor = torch.full((2, 3), hvd.rank()).to(dtype)
        result = hvd.allreduce(tensor, op=hvd.Sum)
        assert result.dtype == dtype and torch.equal(result, torch.full((2, 3), total).to(dtype)), dtype
        assert torch.equal(tensor, torch.full((2, 3), hvd.rank()).to(dtype))
        assert hvd.allreduce_(tensor, op=hvd.Max) is tensor and tensor[0, 0] == ranks - 1
    assert torch.allclose(hvd.allreduce(torch.ones(3) * hvd.rank()), torch.full((3,), total / ranks))
    assert hvd.allreduce(torch.ones(1), average=False).item() == ranks
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum, prescale_factor=3.0, postscale_factor=0.5).item() == 1.5 * ranks
    assert hvd.allreduce(torch.tensor(2.0), op=hvd.Product).item() == 2.0**ranks
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
        result = hvd.allreduce(torch.full((4,), 1.5), compression=compression, op=hvd.Sum)
        assert result.dtype == torch.float32 and result[0] == 1.5 * ranks


def test_handles():
    handles = [hvd.allreduce_async(torch.full((10,), float(i)), name=f"t{i}") for i in range(10)]
    for i, handle in enumerate(reversed(handles)):
        assert hvd.synchronize(handle)[0] == 9 - i
        assert hvd.poll(handle) and hvd.synchronize(handle) is None
    assert hvd.synchronize(10**9) is None


def test_grouped():
    tensors = [torch.full((5,), float(i)) for i in range(4)]
    results = hvd.grouped_allreduce(tensors, op=hvd.Sum)
    assert [result[0].item() for result in results] == [i * hvd.size() for i in range(4)]
    same = hvd.grouped_allreduce_(tensors, op=hvd.Sum)
    assert all(a is b for a, b in zip(same, tensors)) and tensors[3][0] == 3 * hvd.size()
    gathered = hvd.grouped_allgather([torch.ones(2), torch.ones(hvd.rank() + 1, 2)])
    assert gathered[0].shape == (2 * hvd.size(),) and gathered[1].shape[1] == 2
    scattered = hvd.grouped_reducescatter([torch.ones(hvd.size()), torch.ones(hvd.size(), 3)], op=hvd.Sum)
    assert scattered[0].tolist() == [hvd.size()] and scattered[1].shape == (1, 3)


def test_moves():
    rank, ranks = hvd.rank(), hvd.size()
    gathered = hvd.allgather(torch.full((rank + 1, 2), rank))
    assert gathered[:, 0].tolist() == [one for one in range(ranks) for _ in range(one + 1)]
    assert hvd.allgather(torch.tensor(rank)).tolist() == list(range(ranks))
    assert hvd.allgather(torch.zeros(0 if rank else 2, 3)).shape == (2, 3)
    tensor = torch.full((3,), rank)
    copy = hvd.broadcast(tensor, ranks - 1)
    assert copy.tolist() == [ranks - 1] * 3 and tensor.tolist() == [rank] * 3
    assert hvd.broadcast_(tensor, ranks - 1) is tensor and tensor[0] == ranks - 1
    output = hvd.alltoall(torch.arange(ranks) + 10 * rank)
    assert output.tolist() == [10 * one + rank for one in range(ranks)]
    output, received = hvd.alltoall(torch.full((ranks * (rank + 1), 2), rank), splits=[rank + 1] * ranks)
    assert received.tolist() == [one + 1 for one in range(ranks)] and output.shape == (sum(received), 2)
    part = hvd.reducescatter(torch.arange(2 * ranks + 1), op=hvd.Sum)
    assert part.shape[0] == (3 if rank == 0 else 2) and part[0] == ranks * (0 if rank == 0 else 2 * rank + 1)
    hvd.barrier()
    assert hvd.join() in range(ranks)


def test_gradients():
    ranks, rank = hvd.size(), hvd.rank()

    def gradient(function, tensor):
        tensor = tensor.requires_grad_()
        output = function(tensor)
        output.backward(torch.ones_like(output) * (rank + 1))
        return tensor.grad

    total = ranks * (ranks + 1) / 2
    assert gradient(lambda t: hvd.allreduce(t, op=hvd.Sum), torch.ones(2))[0] == total
    assert abs(gradient(hvd.allreduce, torch.ones(2))[0] - total / ranks) < 1e-6
    assert gradient(hvd.allgather, torch.ones(rank + 1, 2)).shape == (rank + 1, 2)
    at_root = gradient(lambda t: hvd.broadcast(t, 0), torch.ones(2))
    assert abs(at_root[0] - (total / ranks if rank == 0 else 0)) < 1e-6
    assert gradient(hvd.alltoall, torch.ones(ranks)).tolist() == [one + 1.0 for one in range(ranks)]
    assert gradient(lambda t: hvd.reducescatter(t, op=hvd.Sum), torch.ones(ranks)).tolist() == [
        float(ranks * (one + 1)) for one in range(ranks)
    ]


def test_process_sets():
    everyone, first = hvd.ProcessSet(range(hvd.size())), hvd.ProcessSet([0])
    assert first.included() is None and first.size() is None
    with raises(ValueError, "has been added already"):
        hvd.add_process_set(everyone)
    with raises(ValueError, "call add_process_set() first"):
        hvd.allreduce(torch.ones(1), process_set=first)
    if hvd.size() > 1:
        assert hvd.add_process_set(first) is first
        assert first.included() == (hvd.rank() == 0) and first.size() == 1
        if hvd.rank() == 0:
            assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=first).item() == 1 and first.rank() == 0
        else:
            with raises(ValueError, "is not in ProcessSet("):
                hvd.allreduce(torch.ones(1), process_set=first)
        assert hvd.remove_process_set(first) and not hvd.remove_process_set(first)


def test_errors():
    with raises(ValueError, "Tensor is required to be contiguous."):
        hvd.allreduce(torch.ones(3, 4).t())
    with raises(ValueError, "Tensor type torch.complex64 is not supported."):
        hvd.allreduce(torch.ones(2, dtype=torch.complex64))
    for call in (hvd.allreduce, hvd.allgather, hvd.alltoall, hvd.reducescatter, hvd.allreduce_):
        with raises(TypeError, "a tensor is needed, not a float"):
            call(1.5)
    with raises(TypeError, "a tensor is needed, not a list"):
        hvd.broadcast([1.0], 0)
    with raises(ValueError, "give op alone"):
        hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum)
    with raises(NotImplementedError, "Adasum"):
        hvd.allreduce(torch.ones(1), op=hvd.Adasum)
    if hvd.size() > 1:
        with raises(ValueError, "give splits"):
            hvd.alltoall(torch.ones(hvd.size() + 1))
    with raises(ValueError, "sum is"):
        hvd.alltoall(torch.ones(hvd.size()), splits=[2] * hvd.size())
    with raises(ValueError, "root_rank 99 is not in"):
        hvd.broadcast(torch.ones(1), 99)
    handle = hvd.allreduce_async(torch.ones(2), name="twice")
    if hvd.size() > 1:
        hvd.synchronize(handle)
        mine = torch.ones(2 + hvd.rank() % 2)
        with raises(hvd.HorovodInternalError, "rank 0 on "):
            hvd.allreduce(mine, name="different")
    else:
        hvd.synchronize(handle)


def test_broadcast_parameters():
    net = model(seed=hvd.rank())
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    assert same_everywhere(net) and torch.equal(net[0].weight, model(seed=0)[0].weight)
    hvd.broadcast_parameters(list(model(seed=hvd.rank()).named_parameters()), root_rank=0)
    with raises(ValueError, "invalid params of type"):
        hvd.broadcast_parameters(net.named_parameters(), root_rank=0)


def test_broadcast_optimizer_state():
    kinds = {
        "sgd": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, nesterov=True),
        "adam": lambda p, lr: torch.optim.Adam(p, lr=lr, weight_decay=0.1),
        "adamw": lambda p, lr: torch.optim.AdamW(p, lr=lr, amsgrad=True),
        "rmsprop": lambda p, lr: torch.optim.RMSprop(p, lr=lr),
        "adagrad": lambda p, lr: torch.optim.Adagrad(p, lr=lr),
    }
    for name, make in kinds.items():
        net = model()
        before = [p.detach().clone() for p in net.parameters()]
        optimizer = make(net.parameters(), 0.01 * (hvd.rank() + 1))
        if hvd.rank() == 0:
            loss_of(net).backward()
            optimizer.step()
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        assert optimizer.param_groups[0]["lr"] == 0.01, name
        if hvd.rank() != 0:
            assert all(torch.equal(a, b) for a, b in zip(before, net.parameters())), f"{name} moved the parameters"
        state = [v for values in optimizer.state_dict()["state"].values() for v in values.values()]
        everyone = hvd.allgather_object(state)
        for one in everyone:
            assert len(one) == len(state) > 0, name
            for a, b in zip(one, everyone[0]):
                assert torch.equal(torch.as_tensor(a), torch.as_tensor(b)), name
    with raises(ValueError, "LBFGS"):
        hvd.broadcast_optimizer_state(torch.optim.LBFGS(model().parameters()), root_rank=0)


def trained(wrap, share, steps=4, **options):
    net = model()
    optimizer = wrap(torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), net, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(net, share).backward()
        optimizer.step()
    return net


def test_optimizer_trains_as_one_process():
    def distributed(optimizer, net, **options):
        return hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), **options)

    alone = trained(lambda optimizer, net: optimizer, slice(None))
    variants = [
        {},
        {"num_groups": 2},
        {"op": hvd.Average, "gradient_predivide_factor": 2.0},
        {"sparse_as_dense": True},
    ]
    results = [trained(distributed, own_share(), **options) for options in variants]
    for options, net in zip(variants, results):
        assert same_everywhere(net)
        difference = max((a - b).abs().max().item() for a, b in zip(net.parameters(), alone.parameters()))
        assert difference < 1e-5, f"{options}: {difference}"
    again = trained(distributed, own_share())
    assert all(torch.equal(a, b) for a, b in zip(results[0].parameters(), again.parameters())), "not reproducible"
    rough = trained(distributed, own_share(), compression=hvd.Compression.fp16)
    assert same_everywhere(rough)
    difference = max((a - b).abs().max().item() for a, b in zip(rough.parameters(), alone.parameters()))
    assert difference < 1e-2


def test_optimizer_is_still_what_it_was():
    net = model()
    plain = torch.optim.Adam(net.parameters(), lr=0.5)
    loss_of(net).backward()
    plain.step()
    state = plain.state[net[0].weight]["exp_avg"].clone()
    optimizer = hvd.DistributedOptimizer(plain, named_parameters=net.named_parameters())
    assert optimizer is plain and isinstance(optimizer, torch.optim.Adam)
    assert torch.equal(optimizer.state[net[0].weight]["exp_avg"], state)
    optimizer.load_state_dict(optimizer.state_dict())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)
    optimizer.zero_grad(set_to_none=True)
    loss_of(net, own_share()).backward()
    optimizer.step()
    schedule.step()
    assert abs(optimizer.param_groups[0]["lr"] - 0.05) < 1e-9
    with raises(ValueError, "already"):
        hvd.DistributedOptimizer(optimizer)


def test_several_passes_and_clipping():
    net = model()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), backward_passes_per_step=2
    )
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(net, own_share()).backward()
        loss_of(net, own_share()).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        with optimizer.skip_synchronize():
            optimizer.step()
    assert same_everywhere(net)
    optimizer.set_backward_passes_per_step(1)
    optimizer.zero_grad()
    loss_of(net, own_share()).backward()
    if hvd.size() > 1:
        with raises(AssertionError, "before optimizer.step() or optimizer.synchronize()"):
            optimizer.zero_grad()
        with raises(AssertionError, "more than backward_passes_per_step times"):
            loss_of(net, own_share()).backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.step()
    assert any("skip_synchronize" in str(one.message) for one in caught)


def test_missing_and_changing_gradients():
    torch.manual_seed(1)
    net = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 1), "b": torch.nn.Linear(2, 1)})
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters())
    # Each rank uses one of the two layers.
    used = net["a" if hvd.rank() % 2 == 0 else "b"]
    for _ in range(2):
        optimizer.zero_grad()
        used(torch.ones(3, 2)).sum().backward()
        optimizer.step()
    assert same_everywhere(net)
    for parameter in net["a"].parameters():
        parameter.requires_grad_(False)
    optimizer.zero_grad()
    net["b"](torch.ones(3, 2)).sum().backward()
    optimizer.step()
    assert same_everywhere(net)


def test_sparse():
    for as_dense in (True, False):
        torch.manual_seed(1)
        table = torch.nn.Embedding(6, 2, sparse=True)
        kind = torch.optim.SGD if as_dense else torch.optim.SparseAdam
        optimizer = hvd.DistributedOptimizer(
            kind(list(table.parameters()), lr=0.1), table.named_parameters(), sparse_as_dense=as_dense
        )
        optimizer.zero_grad()
        table(torch.tensor([hvd.rank(), 5])).sum().backward()
        optimizer.step()
        assert same_everywhere(table)
    finish = hvd.sparse_allreduce_async(
        torch.sparse_coo_tensor([[hvd.rank()]], [1.0], (6,)), name="sparse", op=hvd.Sum
    )
    assert finish().to_dense().tolist() == [1.0] * hvd.size() + [0.0] * (6 - hvd.size())


def test_closure():
    net = model()
    optimizer = hvd.DistributedOptimizer(torch.optim.LBFGS(net.parameters(), max_iter=3), net.named_parameters())

    def closure():
        optimizer.zero_grad()
        loss = loss_of(net, own_share())
        loss.backward()
        # The ranks decide by the loss how far to go, so it has to be the same.
        return hvd.allreduce(loss.detach())

    before = loss_of(net).item()
    for _ in range(3):
        optimizer.step(closure)
    assert same_everywhere(net) and loss_of(net).item() < before


def test_batch_norm():
    torch.manual_seed(3)
    for shape in ((12, 4), (12, 4, 5), (12, 4, 3, 2)):
        whole = torch.rand(shape)
        factors = torch.rand(shape)
        alone, mine = torch.nn.BatchNorm1d(4), hvd.SyncBatchNorm(4)
        if len(shape) == 4:
            alone = torch.nn.BatchNorm2d(4)
        share = own_share()
        everything, part = whole.clone().requires_grad_(), whole[share].clone().requires_grad_()
        for _ in range(2):
            expected, output = alone(everything), mine(part)
        assert torch.allclose(output, expected[share], atol=1e-5)
        (expected * factors).sum().backward()
        (output * factors[share]).sum().backward()
        assert torch.allclose(part.grad, everything.grad[share], atol=1e-4)
        assert torch.allclose(hvd.allreduce(mine.weight.grad, op=hvd.Sum), alone.weight.grad, atol=1e-4)
        assert torch.allclose(mine.running_mean, alone.running_mean, atol=1e-6)
        assert torch.allclose(mine.running_var, alone.running_var, atol=1e-5)
        assert torch.allclose(mine.eval()(whole), alone.eval()(whole), atol=1e-5)
    with raises(ValueError, "at least 2D"):
        hvd.SyncBatchNorm(4)(torch.ones(4))


def test_mistakes_with_the_optimizer():
    net = model()
    plain = torch.optim.SGD(net.parameters(), lr=0.1)
    named = list(net.named_parameters())
    with raises(ValueError, "sequence of tuples"):
        hvd.DistributedOptimizer(plain, named_parameters=net.parameters())
    with raises(ValueError, "found duplicates: same"):
        hvd.DistributedOptimizer(plain, named_parameters=[("same", p) for _, p in named])
    with raises(ValueError, "are not in it"):
        hvd.DistributedOptimizer(plain, named_parameters=named[:-1])
    with raises(ValueError, "gradient_predivide_factor"):
        hvd.DistributedOptimizer(plain, named, op=hvd.Sum, gradient_predivide_factor=2.0)
    with raises(ValueError, "must be > 0"):
        hvd.DistributedOptimizer(plain, named, backward_passes_per_step=0)
    with raises(ValueError, "in groups twice"):
        hvd.DistributedOptimizer(plain, named, groups=[[named[0][1]], [named[0][1]]])
    with raises(NotImplementedError, "Adasum"):
        hvd.DistributedOptimizer(plain, named, op=hvd.Adasum)


def test_again_after_shutdown():
    if hvd.size() > 1 and os.environ.get("PMIX_RANK"):
        hvd.barrier()
    hvd.shutdown()
    assert not hvd.is_initialized()
    with raises(ValueError, "has not been initialised"):
        hvd.size()


if __name__ == "__main__":
    run(globals(), int(os.environ["RANK"]))
