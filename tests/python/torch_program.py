"""ddl.torch, by what Horovod's own tests look at."""
import importlib
import os

import torch

import ddl
import ddl.torch as hvd
from harness import raises, run

FLOATS = (torch.float16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int32, torch.int64)


def test_before_init():
    with raises(ValueError, "has not been initialised"):
        hvd.rank()
    with raises(ValueError, "has not been initialised"):
        hvd.allreduce(torch.ones(1))
    with raises(ValueError, "call init() first"):
        hvd.is_homogeneous()


def test_init():
    hvd.init()
    hvd.init()
    assert hvd.is_initialized() and hvd.size() == int(os.environ["WORLD_SIZE"])
    assert hvd.global_process_set.ranks == list(range(hvd.size())) and hvd.global_process_set.process_set_id == 0
    local_sizes = hvd.allgather_object(hvd.local_size())
    assert hvd.is_homogeneous() == hvd.mpi_ops.is_homogeneous() == (min(local_sizes) == max(local_sizes))
    assert not hvd.ddl_built() and hvd.gloo_built() and (hvd.nccl_built() > 2000) == ddl.has_feature("nccl")


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


def test_a_name_is_in_use_until_its_tensor_was_waited_for():
    calls = (
        hvd.allreduce_async,
        hvd.allgather_async,
        lambda tensor, name: hvd.broadcast_async(tensor, 0, name),
        hvd.alltoall_async,
        hvd.reducescatter_async,
        lambda tensor, name: hvd.grouped_allreduce_async([tensor], name=name),
        lambda tensor, name: hvd.grouped_allgather_async([tensor], name),
        lambda tensor, name: hvd.grouped_reducescatter_async([tensor], name),
    )
    for call in calls:
        first = call(torch.ones(hvd.size()), name="again")
        hvd.barrier()  # carries it out, too
        with raises(ValueError, "again", "call synchronize() for it first"):
            call(torch.ones(hvd.size()), name="again")
        hvd.synchronize(first)
        second = call(torch.ones(hvd.size()), name="again")
        while not hvd.poll(second):
            pass
        hvd.synchronize(call(torch.ones(hvd.size()), name="again"))


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


def adasum_of(tensors):
    """The tree over the ranks' tensors, in double."""
    values = [one.detach().double() for one in tensors]

    def of_two(a, b):
        aa, bb, ab = (a * a).sum(), (b * b).sum(), (a * b).sum()
        return (1 - ab / (2 * aa) if aa > 1e-150 else 1) * a + (1 - ab / (2 * bb) if bb > 1e-150 else 1) * b

    while len(values) > 1:
        pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
        values = [of_two(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0]


def test_adasum():
    rank, ranks = hvd.rank(), hvd.size()
    # Ranks that are orthogonal to each other are added, and those that are equal averaged.
    unit = torch.zeros(ranks)
    unit[rank] = 2.0
    assert torch.equal(hvd.allreduce(unit, op=hvd.Adasum), torch.full((ranks,), 2.0))
    assert torch.equal(hvd.allreduce(torch.full((3, 5), 7.0), op=hvd.Adasum), torch.full((3, 5), 7.0))
    torch.manual_seed(rank)
    for dtype, near in ((torch.float32, 1e-5), (torch.float64, 1e-12), (torch.float16, 2e-3)):
        mine = [torch.rand(17, 3).to(dtype), torch.rand(1).to(dtype) - 0.5, torch.rand(1000).to(dtype)]
        every = hvd.allgather_object(mine)
        wanted = [adasum_of(one) for one in zip(*every)]
        results = hvd.grouped_allreduce(mine, op=hvd.Adasum)
        handles = [hvd.allreduce_async(one, op=hvd.Adasum, prescale_factor=2.0, postscale_factor=0.25) for one in mine]
        for one, tensor, handle in zip(wanted, results, handles):
            limit = near * max(one.norm().item(), 1.0)
            assert (tensor.double() - one).abs().max() <= limit, (dtype, tensor, one)
            assert (hvd.synchronize(handle).double() - one / 2).abs().max() <= limit, dtype
    half = hvd.allreduce(torch.rand(5), op=hvd.Adasum, compression=hvd.Compression.fp16)
    assert half.dtype == torch.float32
    # The gradient is combined alike.
    tensor = torch.ones(4, requires_grad=True)
    (hvd.allreduce(tensor, op=hvd.Adasum) * (3.0 if rank == 0 else 1.0)).sum().backward()
    wanted = adasum_of([torch.full((4,), 3.0 if one == 0 else 1.0) for one in range(ranks)])
    assert (tensor.grad.double() - wanted).abs().max() < 1e-5, (tensor.grad, wanted)


def test_gradients_of_groups():
    ranks, rank = hvd.size(), hvd.rank()
    tensors = [torch.ones(rank + 1, 2, requires_grad=True), torch.ones(3, requires_grad=True)]
    outputs = hvd.grouped_allgather(tensors)
    sum((i + 1) * (rank + 1) * output.sum() for i, output in enumerate(outputs)).backward()
    mean = (ranks + 1) / 2  # of what the ranks multiply by
    assert [one.grad.shape for one in tensors] == [(rank + 1, 2), (3,)]
    for i, one in enumerate(tensors):
        assert torch.allclose(one.grad, torch.tensor((i + 1) * mean))
    # The rows of each rank have another gradient.
    single = torch.ones(rank + 1, requires_grad=True)
    (hvd.allgather(single) * torch.arange(ranks * (ranks + 1) // 2)).sum().backward()
    assert single.grad.tolist() == list(range(rank * (rank + 1) // 2, (rank + 1) * (rank + 2) // 2))
    for op, factor in ((hvd.Average, 1), (hvd.Sum, ranks)):
        tensors = [torch.ones(ranks, requires_grad=True), torch.ones(2 * ranks, 2, requires_grad=True)]
        outputs = hvd.grouped_reducescatter(tensors, op=op)
        sum((i + 1) * (rank + 1) * output.sum() for i, output in enumerate(outputs)).backward()
        assert tensors[0].grad.tolist() == [factor * (one + 1.0) for one in range(ranks)]
        assert tensors[1].grad[::2, 0].tolist() == [2 * factor * (one + 1.0) for one in range(ranks)]


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
    for call in (hvd.reducescatter, hvd.reducescatter_async):
        with raises(RuntimeError, "Adasum is for allreduces alone"):
            call(torch.ones(1), op=hvd.Adasum)
    with raises(hvd.HorovodInternalError, "there is no adasum of int64"):
        hvd.allreduce(torch.ones(1, dtype=torch.int64), op=hvd.Adasum)
    with raises(ValueError, "with a first dimension"):
        hvd.reducescatter(torch.tensor(1.0))
    with raises(ValueError, "with a first dimension"):
        hvd.grouped_reducescatter([torch.ones(3), torch.tensor(1.0)])
    if hvd.size() > 1:
        with raises(ValueError, "give splits"):
            hvd.alltoall(torch.ones(hvd.size() + 1))
    for splits in ([1.0] * hvd.size(), torch.ones(hvd.size())):
        with raises(ValueError, "integers"):
            hvd.alltoall(torch.ones(hvd.size()), splits=splits)
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


def test_batch_norm():
    torch.manual_seed(3)
    for shape in ((12, 4), (12, 4, 5), (12, 4, 3, 2)):
        whole = torch.rand(shape)
        factors = torch.rand(shape)
        alone, mine = torch.nn.BatchNorm1d(4), hvd.SyncBatchNorm(4)
        if len(shape) == 4:
            alone = torch.nn.BatchNorm2d(4)
        share = slice(hvd.rank(), None, hvd.size())
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


def test_batch_norm_of_half_sums_in_float():
    if hvd.size() == 1:
        return  # PyTorch's own
    for dtype in (torch.float16, torch.bfloat16):
        norm = hvd.SyncBatchNorm(2)
        # 70,000 samples, whose number and sum are too large for float16.
        part = torch.full((70_000 // hvd.size() + 1, 2), 3.0).to(dtype)
        part[:, 1] = torch.arange(len(part)).remainder(2) * 4
        output = norm(part)
        assert output.dtype == dtype and torch.isfinite(output).all(), dtype
        assert output[:, 0].abs().max() < 1e-2 and abs(output[:2, 1].float().tolist()[1] - 1) < 1e-2
        assert torch.allclose(norm.running_mean, torch.tensor([0.3, 0.2]), atol=1e-3), dtype


def test_uneven_numbers_of_calls_before_a_join():
    if hvd.size() == 1:
        return
    if hvd.rank() != 0:
        first = None if hvd.rank() > 1 else "mine"
        assert hvd.broadcast_object(first, root_rank=1) == "mine"
        assert hvd.allgather_object(hvd.rank()) == [None, *range(1, hvd.size())]
        hvd.barrier()
        hvd.allreduce(torch.ones(1))
        with raises(hvd.HorovodInternalError, "rank 0 on ", "has joined"):
            hvd.broadcast_object(None, root_rank=0)
    hvd.join()
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()
    assert hvd.broadcast_object(hvd.rank()) == 0


def test_modules():
    for module, names in {
        "mpi_ops": ("allreduce_async_", "synchronize", "Average", "global_process_set", "HorovodInternalError"),
        "functions": ("broadcast_parameters", "broadcast_optimizer_state", "broadcast_object", "allgather_object"),
        "compression": ("Compression", "Compressor", "NoneCompressor", "FP16Compressor"),
        "optimizer": ("DistributedOptimizer",),
        "sync_batch_norm": ("SyncBatchNorm",),
    }.items():
        found = importlib.import_module(f"ddl.torch.{module}")
        assert all(hasattr(found, name) for name in names), module
        assert all(getattr(hvd, name, one) is one for name, one in vars(found).items() if name in names), module


def test_again_after_shutdown():
    if hvd.size() > 1 and os.environ.get("PMIX_RANK"):
        hvd.barrier()
    hvd.shutdown()
    assert not hvd.is_initialized()
    with raises(ValueError, "has not been initialised"):
        hvd.size()


if __name__ == "__main__":
    run(globals(), int(os.environ["RANK"]))
