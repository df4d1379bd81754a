"""The backend "ddl" of torch.distributed: every function, and DistributedDataParallel."""
import datetime
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


def test_types_that_are_only_moved():
    for dtype in (torch.complex64, torch.bool, torch.bfloat16):
        tensor = torch.tensor([rank, 1, 0]).to(dtype)
        outputs = [torch.empty(3, dtype=dtype) for _ in range(ranks)]
        dist.distributed_c10d._get_default_group().allgather([outputs], [tensor]).wait()
        assert all(torch.equal(output, torch.tensor([one, 1, 0]).to(dtype)) for one, output in enumerate(outputs))


def test_several_tensors_as_one_call():
    tensors = [mine(2), mine(3).to(torch.int64), mine(1)]
    dist.distributed_c10d._get_default_group().allreduce_coalesced(tensors).wait()
    for tensor in tensors:
        assert torch.equal(tensor, sum(of(one, tensor.numel()).to(tensor.dtype) for one in range(ranks)))


def test_sparse_sum():
    tensor = torch.sparse_coo_tensor(torch.tensor([[0, rank + 1]]), torch.tensor([[1.0], [2.0]]), (ranks + 1, 1))
    dist.all_reduce(tensor)
    wanted = torch.full((ranks + 1, 1), 2.0)
    wanted[0] = ranks
    assert tensor.is_sparse and torch.equal(tensor.to_dense(), wanted)


def test_messages():
    others = [one for one in range(ranks) if one != rank]
    works = [dist.isend(mine() + tag, other, tag=tag) for other in others for tag in (1, 2)]
    for other in others:
        for tag in (2, 1):  # not in the order in which they were sent
            tensor = torch.empty(4)
            dist.recv(tensor, other, tag=tag)
            assert torch.equal(tensor, of(other) + tag)
    assert all(work.wait() and work.is_completed() and work.is_success() for work in works)
    if rank > 0:
        dist.send(mine(), 0)
    else:
        seen = set()
        for _ in others:
            tensor = torch.empty(4)
            sender = dist.recv(tensor)
            assert torch.equal(tensor, of(sender))
            seen.add(sender)
        assert seen == set(others)
    if ranks > 1 and rank < 2:
        work = dist.irecv(torch.empty(1), 1, tag=3) if rank == 0 else None
        dist.send(torch.ones(1), 0, tag=3) if rank == 1 else work.wait()


def test_groups_of_some_ranks():
    last, rest = dist.new_group([ranks - 1]), dist.new_group(list(range(ranks - 1)) or [0])
    own = last if rank == ranks - 1 else rest
    if ranks > 1 or rank == 0:
        size = 1 if rank == ranks - 1 else ranks - 1
        assert isinstance(own, process_group.ProcessGroup) and dist.get_world_size(own) == size
        for _ in range(3 if own is last else 1):  # how often is the matter of each group
            tensor = torch.ones(1)
            dist.all_reduce(tensor, group=own)
            assert tensor.item() == size
        dist.destroy_process_group(own)
        own.shutdown()  # older versions drop the group without telling it
        with raises(RuntimeError, "destroyed"):
            own.allreduce([torch.ones(1)]).wait()
    everyone = dist.new_group()
    tensor = torch.ones(1)
    works = [dist.all_reduce(tensor, group=everyone, async_op=True), dist.all_reduce(torch.ones(1), async_op=True)]
    assert all(work.wait() for work in reversed(works)) and tensor.item() == ranks


def test_monitored_barrier():
    group = dist.distributed_c10d._get_default_group()
    group.monitored_barrier(datetime.timedelta(seconds=60))
    if ranks > 1:
        if rank == 0:
            with raises(RuntimeError, "failed to pass monitoredBarrier in 50 ms"):
                group.monitored_barrier(datetime.timedelta(milliseconds=50), True)
    dist.barrier()


def test_what_is_refused():
    bad = (
        (lambda: dist.all_reduce(torch.ones(2, dtype=torch.bool)), ValueError, "there is no sum of bool"),
        (lambda: dist.all_reduce(torch.ones(2, device="meta")), ValueError, "none on the device meta"),
        (lambda: dist.broadcast(torch.ones(2).to_sparse(), 0), ValueError, "layout torch.sparse_coo"),
        (lambda: dist.all_gather([torch.ones(2)] * (ranks + 1), torch.ones(2)), ValueError, "one for each rank"),
        (lambda: dist.all_to_all_single(torch.ones(ranks), torch.ones(ranks), [1] * ranks, [2] * ranks), ValueError,
         "Split sizes doesn't match"),
    )
    for call, kind, text in bad:
        with raises(kind, text):
            call()
    if ranks > 1:
        with raises(RuntimeError, "elements"):
            dist.all_reduce(torch.ones(1 + rank))
    empty = torch.ones(0)
    dist.all_reduce(empty)
    dist.barrier()


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
