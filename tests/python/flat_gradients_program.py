"""Gradients of ddl.torch's optimizer that are views of buffers, each of which is combined by one call."""
import contextlib
import io
import os
import sys

import torch

import ddl
import ddl.torch as hvd
from ddl._library import lib
from ddl.torch import _buckets
from ddl.torch._buckets import Bucket, is_dense, shared_zeros, why_not
from harness import raises, run

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
STEPS = 3


def model(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 5), torch.nn.Linear(5, 1))


def loss_of(net, step=0):
    torch.manual_seed(100 * step + RANK)
    inputs = torch.rand(12, 3)
    return (net(inputs) - inputs.sum(dim=1, keepdim=True)).pow(2).mean()


def wrapped(net, flat=True, cap=1e-4, make=torch.optim.SGD, named=True, **options):
    """A cap of 1e-4 MiB is 104 bytes: several buckets, and one gradient that is alone in its own."""
    how = dict(gradient_as_bucket_view=True, bucket_cap_mb=cap) if flat else {}
    names = net.named_parameters() if named else None
    return hvd.DistributedOptimizer(make(net.parameters(), lr=0.1), names, **how, **options)


def trained(flat, to_none=True, passes=1, **options):
    net = model()
    optimizer = wrapped(net, flat, backward_passes_per_step=passes, **options)
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=to_none)
        for one in range(passes):
            loss_of(net, step + 10 * one).backward()
        optimizer.step()
    return net, optimizer


def views(optimizer):
    """Of each parameter in a bucket: whether its gradient is the view, in a buffer of the bucket."""
    return [
        one.grad is bucket._views.get(one) and one.grad.data_ptr() == bucket.flat.data_ptr() + 4 * begin
        for bucket in optimizer._ddl.flat._buckets
        for one, begin in zip(bucket.parameters, bucket.begins)
    ]


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters()))


@contextlib.contextmanager
def verbose(*parts):
    """What the body says with DDL_VERBOSE=1 has these parts once, and nothing else, on the first rank of a host."""
    os.environ["DDL_VERBOSE"], text = "1", io.StringIO()
    try:
        with contextlib.redirect_stderr(text):
            yield
    finally:
        del os.environ["DDL_VERBOSE"]
    said = [line for line in text.getvalue().splitlines() if line.startswith("ddl.torch: ")]  # PyTorch may warn
    assert len(said) == (len(parts) if ddl.local_rank() == 0 else 0), said
    for part in parts if said else ():
        assert sum(part in line for line in said) == 1, f"{part!r} is not in: {said}"


def test_buckets_by_hand():
    weights = [torch.nn.Parameter(torch.zeros(n)) for n in (3, 5, 2)] + [torch.nn.Parameter(torch.zeros(4).double())]
    # 4-byte numbers, at most 32 bytes: 3 and 5 fit, 2 more do not; doubles have a bucket of their own.
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(weights, lr=1.0), gradient_as_bucket_view=True, bucket_cap_mb=32 / 2**20
    )
    found = [[one.numel() for one in bucket.parameters] for bucket in optimizer._ddl.flat._buckets]
    assert found == [[4], [2, 5], [3]], found
    assert [bucket.begins for bucket in optimizer._ddl.flat._buckets] == [[0], [0, 2], [0]]
    sum((i + 1) * (RANK + 1) * one.sum() for i, one in enumerate(weights)).backward()
    optimizer.step()
    mean = (SIZE + 1) / 2
    for i, one in enumerate(weights):
        assert one.tolist() == [-(i + 1) * mean] * one.numel()


def test_priorities_by_hand():
    """What the next forward pass needs first has the highest, also in groups that are cut anyhow."""
    if SIZE == 1:
        return
    for groups, expected in (
        (0, [([5, 4], 0), ([3, 2], 1)]),
        ([[2], [5, 3]], [([4], 0), ([5, 3], 1), ([2], 2)]),
        ([[2, 5]], [([4, 3], 0), ([5, 2], 1)]),
    ):
        weights = {n: torch.nn.Parameter(torch.zeros(n)) for n in (2, 3, 4, 5)}  # in the order of the forward pass
        lists = groups and [[weights[n] for n in group] for group in groups]
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(weights.values(), lr=1.0), groups=lists, gradient_as_bucket_view=True,
            bucket_cap_mb=36 / 2**20,
        )
        for weight in reversed(weights.values()):  # as a backward pass computes them
            weight.sum().backward()
        found = [
            ([one.numel() for one in bucket.parameters], bucket.options._values.priority)
            for bucket in optimizer._ddl.flat._buckets
        ]
        assert found == expected, (groups, found)
        optimizer.step()


def test_padding():
    bucket = Bucket(0, [torch.nn.Parameter(torch.zeros(5)), torch.nn.Parameter(torch.zeros(4))], "ab", 8)
    assert (bucket.count, bucket.begins) == (16, [0, 5])


def test_same_bits_as_one_by_one():
    for passes in (1, 2):
        plain, _ = trained(False, passes=passes)
        for to_none in (True, False):
            for options in ({}, {"named": False}, {"cap": 8.0}, {"groups": 2}):
                net, optimizer = trained(True, to_none, passes, **options)
                assert equal(net, plain), (passes, to_none, options)
                assert SIZE == 1 or all(views(optimizer)), (passes, to_none, options)
    plain, _ = trained(False, op=hvd.Sum)
    assert equal(trained(True, op=hvd.Sum)[0], plain)
    plain, _ = trained(False, gradient_predivide_factor=2.0)
    assert equal(trained(True, gradient_predivide_factor=2.0)[0], plain)


def test_views_stay_views_when_zeroed():
    if SIZE == 1:
        return
    net, optimizer = trained(True, to_none=False)
    addresses = [one.grad.data_ptr() for one in net.parameters()]
    optimizer.zero_grad(set_to_none=False)
    assert all(views(optimizer)) and all((one.grad == 0).all() for one in net.parameters())
    optimizer.zero_grad(set_to_none=True)
    assert all(one.grad is None for one in net.parameters())
    loss_of(net).backward()  # the hooks take what autograd has made
    optimizer.synchronize()
    assert all(views(optimizer)) and addresses == [one.grad.data_ptr() for one in net.parameters()]
    with optimizer.skip_synchronize():
        optimizer.step()


def test_nothing_is_staged_in_a_tensor_of_its_own():
    """The memory of a bucket is libddl's, and goes back when nothing uses it."""
    one = shared_zeros(1000, torch.float32)
    address = one.data_ptr()
    assert address % 4096 == 0 and one.eq(0).all()
    view = one[10:20]
    del one
    view.fill_(1)
    another = shared_zeros(1000, torch.float32)
    assert another.data_ptr() != address
    del view
    assert shared_zeros(1000, torch.float32).data_ptr() == address
    assert shared_zeros(0, torch.float32).numel() == 0


def test_gradients_that_the_program_replaces():
    net, plain = model(), model()
    pair = [(net, wrapped(net)), (plain, wrapped(plain, flat=False, named=False))]
    for step in range(STEPS):
        for one, optimizer in pair:
            optimizer.zero_grad()
            loss_of(one, step).backward()
            if step == 1:
                for parameter in one.parameters():
                    parameter.grad = parameter.grad.clone()  # while it is on its way
            optimizer.synchronize()
            for parameter in one.parameters():
                parameter.grad = parameter.grad * 2
            with optimizer.skip_synchronize():
                optimizer.step()
    assert equal(net, plain)


def test_graph_of_gradients_stays():
    if SIZE == 1:
        return
    net = model()
    optimizer = wrapped(net)
    loss_of(net).backward(create_graph=True)
    optimizer.synchronize()
    gradients = hvd.allgather_object([one.grad.detach().clone() for one in net.parameters()])
    assert all(torch.equal(a, b) for one in gradients for a, b in zip(one, gradients[0]))
    assert all(one.grad.requires_grad for one in net.parameters())


def test_clipping_and_missing_gradients():
    nets = []
    for flat in (True, False):
        torch.manual_seed(1)
        net = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 1), "b": torch.nn.Linear(2, 1)})
        optimizer = wrapped(net, flat)
        used = net["a" if RANK % 2 == 0 else "b"]  # each rank uses one of the two
        for _ in range(2):
            optimizer.zero_grad()
            used(torch.ones(3, 2)).sum().backward()
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            with optimizer.skip_synchronize():
                optimizer.step()
        for parameter in net["a"].parameters():  # frozen
            parameter.requires_grad_(False)
        before = [one.grad.clone() if one.grad is not None else None for one in net["a"].parameters()]
        for to_none in (False, True):
            net["b"].zero_grad(set_to_none=to_none)
            net["b"](torch.ones(3, 2)).sum().backward()
            optimizer.step()
        assert all(a is None or torch.equal(a, one.grad) for a, one in zip(before, net["a"].parameters()))
        nets.append(net)
    assert equal(*nets)


def test_sparse_goes_by_itself():
    results = []
    for flat in (True, False):
        torch.manual_seed(1)
        net = torch.nn.ModuleDict({"table": torch.nn.Embedding(6, 2, sparse=True), "dense": torch.nn.Linear(2, 3)})
        with verbose(*["the gradient of table.weight is sparse"] if flat and SIZE > 1 else []):
            optimizer = wrapped(net, flat, cap=8.0)
            for _ in range(STEPS):
                optimizer.zero_grad()
                net["dense"](net["table"](torch.tensor([RANK, 5]))).sum().backward()
                optimizer.step()
                assert net["table"].weight.grad.is_sparse
        assert not flat or SIZE == 1 or optimizer._ddl.flat._buckets == []
        results.append(net)
    assert equal(*results)


def test_sparse_on_one_rank_alone_is_an_error():
    if SIZE == 1:
        return
    table = torch.nn.Embedding(6, 2, sparse=RANK == 0)
    optimizer = wrapped(table)
    table(torch.tensor([0])).sum().backward()
    with raises(hvd.HorovodInternalError, "allreduce.bucket.0"):
        optimizer.step()


class NoSharedMemory:
    """libddl, if it has no memory that ranks share."""

    DDL_OK, ddl_last_error = lib.DDL_OK, lib.ddl_last_error

    @staticmethod
    def ddl_alloc(*_):
        return lib.DDL_ERROR_SYSTEM


def steps_of(optimizer, loss_of_step, **backward):
    for _ in range(2):
        optimizer.zero_grad()
        loss_of_step().backward(**backward)
        optimizer.step()


def test_what_cannot_be_a_view_says_so():
    net = model()
    for options, reason in (
        (dict(compression=hvd.Compression.fp16), "they are compressed"),
        (dict(op=hvd.Adasum), "Adasum is of each tensor by itself"),
    ):
        with verbose(f"gradients are in no buckets, because {reason}"):
            optimizer = wrapped(net, **options)
            steps_of(optimizer, lambda: loss_of(net))
        assert optimizer._ddl.flat._buckets == []
    holes = torch.nn.Parameter(torch.zeros(4, 2)[:, 0])
    alone = {
        "holes": (holes, "has holes between its elements"),
        "device": (torch.nn.Parameter(torch.zeros(2, device="meta")), "is on a device"),
        "numbers": (torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64)), "is of torch.complex64"),
        "dense": (torch.nn.Parameter(torch.zeros(2)), "is in a group with others that cannot be in one buffer"),
    }
    named = [(name, one) for name, (one, _) in alone.items()]
    groups = [[alone["holes"][0], alone["dense"][0]]]
    with verbose(*[
        f"the gradient of {name} is in no bucket, because the parameter {reason}" for name, (_, reason) in alone.items()
    ]):
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([one for _, one in named], lr=1.0), named, groups=groups, gradient_as_bucket_view=True
        )
    assert why_not(torch.nn.Parameter(torch.eye(2).to_sparse())) == "is sparse"
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([holes], lr=1.0), [("holes", holes)], gradient_as_bucket_view=True
    )
    (holes.sum() * (RANK + 1)).backward()
    optimizer.step()
    assert holes.tolist() == [-(SIZE + 1) / 2] * 4


def test_what_cannot_be_a_view_in_a_step_says_so():
    if SIZE == 1:
        return  # the gradients are this rank's
    net = model()
    net[0].requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([*net[0].parameters(), *net[2].parameters()], lr=0.1), net.named_parameters(),
        gradient_as_bucket_view=True,
    )
    net[0].weight.requires_grad_(True)
    optimizer.add_param_group({"params": net[3].parameters()})
    with verbose(*[
        f"the gradient of {name} is in no bucket, because the parameter was added or unfrozen"
        for name in ("0.weight", "3.weight", "3.bias")
    ]):
        steps_of(optimizer, lambda: loss_of(net))
    weights = hvd.allgather_object(net[0].weight.detach())
    assert all(torch.equal(one, weights[0]) for one in weights)
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([weight], lr=0.1), [("weight", weight)], gradient_as_bucket_view=True
    )
    with verbose("the gradient of weight is copied in and out of its bucket, because it has"):
        steps_of(optimizer, lambda: weight.pow(2).sum(), create_graph=True)
    _buckets.lib = NoSharedMemory
    try:
        net = model()
        optimizer = wrapped(net)
        with verbose("gradients lie in memory of this rank alone"):
            steps_of(optimizer, lambda: loss_of(net))
        assert len(optimizer._ddl.flat._buckets) > 1
    finally:
        _buckets.lib = lib


def test_other_orders_of_dimensions():
    assert is_dense(torch.zeros(2, 3, 4, 5)) and is_dense(torch.zeros(()))
    assert is_dense(torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last))
    assert not is_dense(torch.zeros(4, 2)[:, 0]) and not is_dense(torch.zeros(1).expand(3))
    nets = []
    for flat in (True, False):
        torch.manual_seed(1)
        net = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
        optimizer = wrapped(net, flat)
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            torch.manual_seed(RANK)
            net(torch.rand(2, 3, 5, 5).to(memory_format=torch.channels_last)).pow(2).sum().backward()
            optimizer.step()
        assert not flat or SIZE == 1 or (all(views(optimizer)) and net.weight.grad.stride() == net.weight.stride())
        nets.append(net)
    assert equal(*nets)


def test_shared_parameters():
    nets = []
    for flat in (True, False):
        torch.manual_seed(1)
        first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        second.weight = first.weight
        net = torch.nn.Sequential(first, torch.nn.Tanh(), second)
        optimizer = wrapped(net, flat)
        for step in range(STEPS):
            optimizer.zero_grad()
            net(torch.ones(2, 3) * (RANK + step)).sum().backward()
            optimizer.step()
        nets.append(net)
    assert equal(*nets)


def test_process_set():
    if SIZE == 1:
        return
    inside = hvd.add_process_set(range(SIZE - 1))
    net = model()
    optimizer = wrapped(net, process_set=inside)
    for step in range(2):
        optimizer.zero_grad()
        loss_of(net, step).backward()
        optimizer.step()
    weights = hvd.allgather_object(net[0].weight.detach())
    assert all(torch.equal(one, weights[0]) for one in weights[:-1]) and not torch.equal(weights[-1], weights[0])
    hvd.remove_process_set(inside)


def test_ranks_with_another_order():
    net = model()
    own = list(net.parameters())[:: -1 if RANK % 2 else 1]
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(own, lr=0.1), net.named_parameters(), gradient_as_bucket_view=True
    )
    loss_of(net).backward()
    optimizer.step()
    everyone = hvd.allgather_object([one.detach() for one in net.parameters()])
    assert all(torch.equal(a, b) for one in everyone for a, b in zip(one, everyone[0]))


def test_loading_and_a_second_pass_too_many():
    net = model()
    optimizer = wrapped(net, backward_passes_per_step=2)
    for passes in (1, 2):  # one is still counted; all gradients are on their way
        for _ in range(passes):
            loss_of(net).backward()
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.zero_grad()
    for _ in range(2):
        loss_of(net).backward()
    if SIZE > 1:
        with raises(AssertionError, "more than backward_passes_per_step times"):
            loss_of(net).backward()
    optimizer.step()


def test_gradients_outlive_the_job():
    net, optimizer = trained(True)
    before = [one.grad.clone() for one in net.parameters()]
    address = net[0].weight.grad.data_ptr()
    hvd.shutdown()
    assert all(torch.equal(a, one.grad) for a, one in zip(before, net.parameters()))
    assert SIZE == 1 or net[0].weight.grad.data_ptr() != address
    hvd.init()
    optimizer.zero_grad(set_to_none=False)
    loss_of(net).backward()
    optimizer.step()
    assert SIZE == 1 or all(views(optimizer))


if __name__ == "__main__":
    run(globals(), RANK)
