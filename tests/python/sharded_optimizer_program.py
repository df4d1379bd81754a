"""An optimizer whose state is divided among the ranks: what it updates, its state, and its memory."""
import math

import torch

import ddl
import ddl.torch as hvd
from harness import raises, run

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
STEPS = 3
TINY = 1e-3  # MiB: 1,048 bytes, so that there are several buckets, and tensors that lie in several slices

KINDS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
}


def model(seed=1):
    """Numbers of elements that are no multiples of anything: 7 x 37, 37, 37 x 41, 41, 41 x 1, 1."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(7, 37), torch.nn.Tanh(), torch.nn.Linear(37, 41), torch.nn.Tanh(), torch.nn.Linear(41, 1)
    )


def loss_of(net, step=0):
    torch.manual_seed(100 * step + RANK)
    inputs = torch.rand(12, 7)
    return (net(inputs) - inputs.sum(dim=1, keepdim=True)).pow(2).mean()


def sharded(net, kind="adam", cap=TINY, **options):
    return hvd.ShardedOptimizer(KINDS[kind](net.parameters()), net.named_parameters(), bucket_cap_mb=cap, **options)


def train(net, optimizer, first=0, steps=STEPS, passes=1):
    for step in range(first, first + steps):
        optimizer.zero_grad()
        for one in range(passes):
            loss_of(net, step + 50 * one).backward()
        optimizer.step()
    return net


def plain(kind="adam", steps=STEPS, passes=1, make=None, net=None):
    net = net or model()
    optimizer = (make or KINDS[kind])(net.parameters())
    return net, train(
        net, hvd.DistributedOptimizer(optimizer, net.named_parameters(), backward_passes_per_step=passes), 0, steps,
        passes,
    ), optimizer


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters()))


def same_everywhere(net):
    everyone = hvd.allgather_object([one.detach().clone() for one in net.parameters()])
    return all(torch.equal(a, b) for one in everyone for a, b in zip(one, everyone[0]))


def test_same_bits_as_data_parallel():
    for kind in KINDS:
        for passes in (1, 2):
            expected, _, _ = plain(kind, passes=passes)
            for cap in (TINY, 8.0):
                net = model()
                train(net, sharded(net, kind, cap, backward_passes_per_step=passes), passes=passes)
                assert same_everywhere(net) and equal(net, expected), (kind, passes, cap)


def test_an_element_has_the_same_bits_at_any_offset():
    """What the test above rests on: PyTorch's vector instructions and its loops for remainders agree."""
    torch.manual_seed(1)
    values, gradients = torch.randn(1000), [torch.randn(1000) * 10.0**i for i in range(-3, 3)]
    for kind, make in KINDS.items():
        results = []
        for cuts in ([0, 1000], [0, 1, 2, 5, 16, 33, 500, 999, 1000]):
            parts = []
            for begin, end in zip(cuts, cuts[1:]):
                room = torch.zeros(end - begin + 3)
                room[3:] = values[begin:end]  # at an odd address
                parts.append(torch.nn.Parameter(room[3:]))
            optimizer = make(parts)
            for gradient in gradients:
                for part, begin, end in zip(parts, cuts, cuts[1:]):
                    part.grad = gradient[begin:end].clone()
                optimizer.step()
            results.append(torch.cat([part.detach() for part in parts]))
        assert torch.equal(*results), kind


def test_padding():
    net = model()
    optimizer = sharded(net)
    names = [name for name, _ in net.named_parameters()]
    for bucket in optimizer._ddl.flat.buckets:
        assert bucket.count % (SIZE * 32) == 0 and bucket.count - SIZE * 32 < sum(p.numel() for p in bucket.parameters)
        assert bucket.share * SIZE == bucket.count
    # Every element is one rank's.
    own = optimizer.shard_state_dict()["shards"]
    shards = hvd.allgather_object({name: (one["begin"], one["end"]) for name, one in own.items()})
    for name, parameter in net.named_parameters():
        own = sorted(one[name] for one in shards if name in one)
        assert own[0][0] == 0 and own[-1][1] == parameter.numel() and name in names
        assert all(a[1] == b[0] for a, b in zip(own, own[1:]))
    if SIZE > 1:
        assert any(len([one for one in shards if name in one]) > 1 for name in names)  # some are cut
    train(net, optimizer)
    for bucket in optimizer._ddl.flat.buckets:
        end = bucket.begins[-1] + bucket.parameters[-1].numel()
        assert (bucket.values[end:] == 0).all()


def bytes_of(tensors):
    storages = {}
    for one in tensors:
        storage = one.untyped_storage() if hasattr(one, "untyped_storage") else one.storage()
        storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def test_memory_formula():
    torch.manual_seed(1)
    net = torch.nn.Sequential(*(torch.nn.Linear(301, 301) for _ in range(4)))
    optimizer = hvd.ShardedOptimizer(torch.optim.Adam(net.parameters()), net.named_parameters(), bucket_cap_mb=1.0)
    optimizer.zero_grad()
    net(torch.ones(2, 301)).sum().backward()
    optimizer.step()
    count = sum(one.numel() for one in net.parameters())
    state = [
        value for one in optimizer._ddl.flat.optimizers if one.optimizer is not None
        for values in one.optimizer.state.values() for value in values.values()
    ]
    own = [piece.weight for one in optimizer._ddl.flat.optimizers for piece in one.bucket.pieces]
    found = bytes_of([*net.parameters(), *own, *(p.grad for p in net.parameters()), *state]) / count
    assert abs(found / (8 + 8 / SIZE) - 1) < 0.02, found
    assert all(one.grad is None for one in own) and not optimizer.state


def halves(seed=1):
    return model(seed).to(torch.bfloat16)


def test_16_bits_are_updated_in_32():
    torch.manual_seed(1)
    net, masters = halves(), [one.detach().float() for one in halves().parameters()]
    optimizer = sharded(net, "adam")
    reference = KINDS["adam"]([torch.nn.Parameter(one) for one in masters])
    for step in range(STEPS):
        optimizer.zero_grad()
        torch.manual_seed(100 * step + RANK)
        inputs = torch.rand(12, 7).to(torch.bfloat16)
        own = torch.autograd.grad(net(inputs).pow(2).sum(), list(net.parameters()))
        gradients = [hvd.allreduce(one.contiguous()) for one in own]  # rounded once, to 16 bits
        net(inputs).pow(2).sum().backward()
        for master, gradient in zip(reference.param_groups[0]["params"], gradients):
            master.grad = gradient.float()
        reference.step()
        optimizer.step()
        for one, master in zip(net.parameters(), reference.param_groups[0]["params"]):
            assert torch.equal(one, master.detach().to(torch.bfloat16))
    # What the program changes is taken, such as by hvd.broadcast_parameters().
    net.load_state_dict(halves(2).state_dict())
    optimizer.zero_grad()
    optimizer.step()
    assert same_everywhere(net)
    difference = max((a.float() - b.float()).abs().max() for a, b in zip(net.parameters(), halves(2).parameters()))
    assert difference < 0.1


def groups_of(net, kind=torch.optim.AdamW):
    decayed = [one for name, one in net.named_parameters() if name.endswith("weight")]
    others = [one for name, one in net.named_parameters() if not name.endswith("weight")]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0, "lr": 0.02}]
    return kind(groups, lr=0.01)


def test_groups_and_schedules():
    nets = []
    for is_sharded in (True, False):
        net = model()
        optimizer = groups_of(net)
        wrap = hvd.ShardedOptimizer if is_sharded else hvd.DistributedOptimizer
        more = {"bucket_cap_mb": TINY} if is_sharded else {}
        optimizer = wrap(optimizer, net.named_parameters(), **more)
        assert isinstance(optimizer, torch.optim.AdamW)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        for step in range(STEPS):
            train(net, optimizer, step, 1)
            schedule.step()
        assert [group["lr"] for group in optimizer.param_groups] == [0.01 / 8, 0.02 / 8]
        nets.append(net)
    assert equal(*nets)


def test_clipped_norm_is_that_of_all_gradients():
    for kind in (2.0, math.inf):
        net, reference = model(), model()
        optimizer = sharded(net, "momentum")
        other = hvd.DistributedOptimizer(KINDS["momentum"](reference.parameters()), reference.named_parameters())
        for step in range(STEPS):
            for one, its in ((net, optimizer), (reference, other)):
                its.zero_grad()
                (1000 * loss_of(one, step)).backward()
            other.synchronize()
            gradients = torch.cat([one.grad.flatten() for one in reference.parameters()]).double()
            expected = gradients.norm(kind).item()
            scale = min(1.0, 0.5 / (expected + 1e-6))
            for one in reference.parameters():
                one.grad.mul_(scale)
            norm = optimizer.clip_grad_norm_(0.5, kind)
            assert abs(norm.item() / expected - 1) < 1e-6 and expected > 0.5
            assert hvd.allgather_object(norm.item()) == [norm.item()] * SIZE
            with other.skip_synchronize():
                other.step()
            optimizer.step()
        assert same_everywhere(net)
        # The scale may differ in the last bit of a double, so a gradient in the last bit of a float.
        for a, b in zip(net.parameters(), reference.parameters()):
            assert torch.allclose(a, b, rtol=1e-6, atol=1e-7)
    net = model()
    optimizer = sharded(net, "sgd")
    loss_of(net).backward()
    before = [one.clone() for one in optimizer._ddl.flat.own_gradients()] if SIZE == 1 else None
    optimizer.clip_grad_norm_(1e9)
    assert before is None or all(torch.equal(a, b) for a, b in zip(before, optimizer._ddl.flat.own_gradients()))
    with raises(ValueError, "norm_type is 2 or infinity, not 3"):
        optimizer.clip_grad_norm_(1.0, 3)
    optimizer.step()
    assert equal(net, plain("sgd", 1)[0])


def test_infinite_gradients_do_not_stay():
    net = model()
    optimizer = sharded(net, "sgd")
    for scale in (math.inf, 1.0):
        optimizer.zero_grad()
        (scale * loss_of(net)).backward()
        norm = optimizer.clip_grad_norm_(1.0)
        assert math.isfinite(norm) == (scale == 1.0)
    optimizer.step()
    assert same_everywhere(net) and all(one.isfinite().all() for one in net.parameters())


def test_norm_by_hand():
    weights = [torch.nn.Parameter(torch.zeros(40)), torch.nn.Parameter(torch.zeros(1))]
    optimizer = hvd.ShardedOptimizer(torch.optim.SGD(weights, lr=1.0))
    (2 * weights[0].sum() + 3 * weights[1].sum()).backward()  # 40 x 2^2 + 3^2 = 169
    assert optimizer.clip_grad_norm_(6.5).item() == 13.0
    optimizer.step()
    for weight, gradient in zip(weights, (2.0, 3.0)):  # half of it
        assert torch.allclose(weight, torch.full_like(weight, -gradient / 2), rtol=1e-6)


def test_scaler_agrees():
    """An infinity that one rank alone sees, in the slice of the last one."""
    net = model()
    optimizer = sharded(net, "sgd")
    scaler = hvd.ShardedGradScaler(**({"device": "cpu"} if hasattr(torch.amp, "GradScaler") else {}))
    for is_bad in (False, True, False):
        before = [one.detach().clone() for one in net.parameters()]
        optimizer.zero_grad()
        (8 * loss_of(net)).backward()
        if is_bad and RANK == SIZE - 1:
            optimizer.synchronize()
            optimizer._ddl.flat.own_gradients()
            bucket = max(optimizer._ddl.flat.buckets, key=lambda one: one.count)
            bucket.gradient()[bucket.pieces[-1].at] = math.inf
        inverse = torch.tensor([0.125])
        found = scaler._unscale_grads_(optimizer, inverse, torch.zeros(1), False)
        assert [one.item() for one in found.values()] == [float(is_bad)]
        assert optimizer._step_supports_amp_scaling  # a scaler of PyTorch calls step(), which refuses
        if not is_bad:
            optimizer.step()
        assert same_everywhere(net)
        assert is_bad == all(torch.equal(a, b) for a, b in zip(before, net.parameters()))
    with raises(RuntimeError, "use ddl.torch.ShardedGradScaler"):
        optimizer.step(grad_scaler=scaler)
    optimizer.found_inf = torch.zeros(1)
    with raises(RuntimeError, "use ddl.torch.ShardedGradScaler"):
        optimizer.step()
    del optimizer.found_inf


def test_scaler_of_cpus():
    if not hasattr(torch.amp, "GradScaler"):
        return  # PyTorch 2.3 has the first one
    nets = []
    for is_sharded in (True, False):
        net = model()
        optimizer = sharded(net, "sgd") if is_sharded else hvd.DistributedOptimizer(KINDS["sgd"](net.parameters()))
        scaler = hvd.ShardedGradScaler(device="cpu", init_scale=1024.0, growth_interval=2)
        for step in range(5):
            optimizer.zero_grad()
            loss = loss_of(net, step) * (math.inf if step == 1 and RANK == 0 else 1.0)
            scaler.scale(loss).backward()
            if not is_sharded:
                optimizer.synchronize()
                with optimizer.skip_synchronize():
                    scaler.step(optimizer)
            else:
                scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 1024.0 and same_everywhere(net)  # halved, and doubled after two good steps
        nets.append(net)
    assert equal(*nets)
    theirs = torch.amp.GradScaler("cpu")
    net = model()
    optimizer = sharded(net, "sgd")
    theirs.scale(loss_of(net)).backward()
    with raises(RuntimeError, "use ddl.torch.ShardedGradScaler"):
        theirs.step(optimizer)


class _Lamb(torch.optim.SGD):
    pass


_Lamb.__name__ = "LAMB"


class _Own(torch.optim.SGD):
    pass


class _Lars(_Own):
    pass


_Lars.__name__ = "LARS"


def test_refused_optimizers():
    parameters = list(model().parameters())
    for make, reason in {
        lambda: torch.optim.LBFGS(parameters): "LBFGS cannot be sharded: it searches along a direction of all",
        lambda: torch.optim.SparseAdam(parameters): "SparseAdam cannot be sharded: it is for sparse gradients",
        lambda: _Lamb(parameters, lr=1.0): "LAMB cannot be sharded: it needs the norm of each whole tensor",
        lambda: _Lars(parameters, lr=1.0): "LARS cannot be sharded: it needs the norm of each whole tensor",
        lambda: _Own(parameters, lr=1.0): "_Own is not known to treat each element of a tensor by itself",
    }.items():
        with raises(ValueError, reason):
            hvd.ShardedOptimizer(make())
    hvd.ShardedOptimizer(_Own(parameters, lr=1.0), elementwise=True)
    net = model()
    optimizer = sharded(net)
    with raises(ValueError, "already"):
        hvd.ShardedOptimizer(optimizer)
    with raises(ValueError, "already"):
        hvd.DistributedOptimizer(optimizer)
    with raises(RuntimeError, "cannot be added"):
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    with raises(ValueError, "cannot be sharded: it is of torch.complex64"):
        hvd.ShardedOptimizer(torch.optim.SGD([torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))], lr=1.0))


def test_sparse_gradients_are_refused():
    if SIZE == 1:
        return
    table = torch.nn.Embedding(6, 2, sparse=True)
    optimizer = hvd.ShardedOptimizer(torch.optim.SGD(table.parameters(), lr=1.0), table.named_parameters())
    with raises(ValueError, "the gradient of weight is sparse"):
        table(torch.tensor([1])).sum().backward()
    optimizer._ddl.begin_anew()


def test_missing_and_frozen_parameters():
    nets = []
    for is_sharded in (True, False):
        torch.manual_seed(1)
        net = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 1), "b": torch.nn.Linear(2, 1)})
        net["never"] = torch.nn.Linear(2, 1).requires_grad_(False)
        make = KINDS["momentum"](net.parameters())
        optimizer = (hvd.ShardedOptimizer if is_sharded else hvd.DistributedOptimizer)(make, net.named_parameters())
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            net["a" if RANK % 2 == 0 else "b"](torch.ones(3, 2)).sum().backward()
            optimizer.step()
        net["a"].requires_grad_(False)
        optimizer.zero_grad(set_to_none=True)
        net["b"](torch.ones(3, 2)).sum().backward()
        optimizer.step()
        nets.append(net)
    assert equal(*nets)


def test_state_of_all_ranks():
    net = model()
    optimizer = train_and_return(net)
    _, _, reference = plain("adam")
    if SIZE > 1:
        with raises(RuntimeError, "call consolidate_state_dict(to=0) on all ranks"):
            optimizer.state_dict()
    last = SIZE - 1
    optimizer.consolidate_state_dict(to=last)
    if RANK != last:
        return
    state = optimizer.state_dict()
    expected = reference.state_dict()
    assert state["names"] == [name for name, _ in net.named_parameters()]
    assert state["param_groups"] == expected["param_groups"] and len(state["state"]) == 6
    for number, values in expected["state"].items():
        assert set(state["state"][number]) == set(values)
        for key, value in values.items():
            found = state["state"][number][key]
            assert torch.equal(torch.as_tensor(found), torch.as_tensor(value)), (number, key)
    # One process goes on from it.
    alone = torch.optim.Adam(model().parameters(), lr=0.5)
    alone.load_state_dict(state)
    assert alone.param_groups[0]["lr"] == 0.01


def train_and_return(net, kind="adam", **options):
    optimizer = sharded(net, kind, **options)
    train(net, optimizer)
    return optimizer


def test_goes_on_from_the_state_of_an_optimizer_that_is_not_sharded():
    expected, _, reference = plain("adam", 2 * STEPS)
    for is_loaded in (True, False):
        net, _, plain_one = plain("adam")
        alone = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=0.01, amsgrad=True)
        alone.load_state_dict(plain_one.state_dict())
        if is_loaded:
            fresh = torch.optim.Adam(net.parameters(), lr=0.5, weight_decay=0.01, amsgrad=True)
            optimizer = hvd.ShardedOptimizer(fresh, net.named_parameters(), bucket_cap_mb=TINY)
            optimizer.load_state_dict(alone.state_dict())
        else:  # it has its state already when it is sharded
            optimizer = hvd.ShardedOptimizer(alone, net.named_parameters(), bucket_cap_mb=TINY)
        assert not optimizer.state and optimizer.param_groups[0]["lr"] == 0.01
        train(net, optimizer, STEPS)
        assert equal(net, expected), is_loaded


def test_shards_of_other_numbers_of_ranks():
    """2 -> 3 -> 1 -> 4 ranks, and so on: process sets of the first ranks save, and all load."""
    numbers = [one for one in (2, 3, 1, 4) if one <= SIZE]
    expected, _, _ = plain_of_first(numbers)
    net, saved, weights = model(), None, None
    step = 0
    for count in numbers:
        inside = hvd.global_process_set if count == SIZE else hvd.add_process_set(range(count))
        if RANK < count:
            if weights is not None:
                net.load_state_dict(weights)
            optimizer = sharded(net, "adam", process_set=inside)
            if saved is not None:
                optimizer.load_state_dict(saved)
            train(net, optimizer, step, 1)
            mine = optimizer.shard_state_dict()
        step += 1
        everyone = hvd.allgather_object((mine, net.state_dict()) if RANK < count else None)
        saved = [one[0] for one in everyone if one is not None]
        weights = everyone[0][1]
        assert len(saved) == count
        if count < SIZE:
            hvd.remove_process_set(inside)
    assert all(torch.equal(a, b) for a, b in zip(weights.values(), expected.state_dict().values()))
    if len(saved) > 1:
        optimizer = sharded(model())
        with raises(ValueError, f"the shards of ranks {len(saved) - 1} of {len(saved)} are missing"):
            optimizer.load_state_dict(saved[:-1])
    other = torch.nn.Sequential(*(torch.nn.Linear(7, 36) for _ in range(3)))
    named = zip((name for name, _ in model().named_parameters()), other.parameters())
    optimizer = hvd.ShardedOptimizer(torch.optim.Adam(other.parameters()), named)
    with raises(ValueError, "is of the shape [", ", and the parameter has ["):
        optimizer.load_state_dict(saved)
    optimizer = hvd.ShardedOptimizer(torch.optim.Adam(other[0].parameters()))
    with raises(ValueError, "other groups of parameters"):
        optimizer.load_state_dict(saved)
    with raises(ValueError, "neither that of an optimizer"):
        optimizer.load_state_dict([{}])


def plain_of_first(numbers):
    """The same training by DistributedOptimizer, whose state every rank has."""
    net = model()
    optimizer = KINDS["adam"](net.parameters())
    state = None
    for step, count in enumerate(numbers):
        inside = hvd.global_process_set if count == SIZE else hvd.add_process_set(range(count))
        one = KINDS["adam"](net.parameters())
        if state is not None:
            one.load_state_dict(state)
        if RANK < count:
            train(net, hvd.DistributedOptimizer(one, net.named_parameters(), process_set=inside), step, 1)
        everyone = hvd.allgather_object((net.state_dict(), one.state_dict()))
        net.load_state_dict(everyone[0][0])
        state = everyone[0][1]
        if count < SIZE:
            hvd.remove_process_set(inside)
    return net, optimizer, state


def test_state_that_only_root_has_is_an_error():
    net = model()
    hvd.broadcast_optimizer_state(sharded(net), 0)  # nothing but the options
    optimizer = train_and_return(net)
    with raises(ValueError, "load the state on every rank"):
        hvd.broadcast_optimizer_state(optimizer, 0)


def test_modules_wait_for_their_parameters():
    expected, _, _ = plain("adam")
    net = model()
    optimizer = sharded(net, "adam", model=net)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(net, step).backward()  # calls the modules
        optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), expected.state_dict().values()))
    optimizer.zero_grad()
    loss_of(net, STEPS).backward()
    optimizer.step()
    optimizer.wait_for_parameters()
    assert equal(net, plain("adam", STEPS + 1)[0])


def test_closure_and_a_process_set():
    net = model()
    optimizer = sharded(net, "sgd")

    def closure():
        optimizer.zero_grad()
        loss = loss_of(net)
        loss.backward()
        return loss

    assert optimizer.step(closure).item() > 0 and equal(net, plain("sgd", 1)[0])
    if SIZE == 1:
        return
    inside = hvd.add_process_set(range(SIZE - 1))
    net = model()
    optimizer = sharded(net, "sgd", process_set=inside)
    train(net, optimizer)
    weights = hvd.allgather_object(net[0].weight.detach().clone())
    assert all(torch.equal(one, weights[0]) for one in weights[:-1]) and not torch.equal(weights[-1], weights[0])
    hvd.remove_process_set(inside)


def test_a_rank_that_joins_is_an_error():
    """Its part would not be updated."""
    if SIZE == 1:
        return
    net = model()
    optimizer = train_and_return(net)
    if RANK > 0:
        optimizer.zero_grad()
        loss_of(net).backward()
        with raises(ddl.Mismatch, "allgather.slice."):
            optimizer.step()
    hvd.join()


def test_goes_on_after_another_init():
    net = model()
    optimizer = sharded(net)
    for step in range(STEPS):
        train(net, optimizer, step, 1)
        hvd.shutdown()
        hvd.init()
    assert equal(net, plain("adam")[0])


if __name__ == "__main__":
    run(globals(), RANK)
