"""ddl.torch's optimizers, and what ranks get from one before they train."""
import warnings

import torch

import ddl
import ddl.torch as hvd
from harness import raises, run

hvd.init()


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


def with_state(kind, net, steps=1, **options):
    optimizer = kind(net.parameters(), **options)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(net).backward()
        optimizer.step()
    return optimizer


def states(optimizer):
    """Of all ranks: by the number of the parameter, and name."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return hvd.allgather_object({i: dict(optimizer.state[p]) for i, p in enumerate(parameters) if p in optimizer.state})


def test_state_keeps_its_type():
    weight = torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    if hvd.rank() == 0:
        optimizer.state[weight] = {"master": torch.full((3,), 1 + 2**-20), "scales": [torch.ones(2, dtype=torch.int8)]}
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    state = optimizer.state[weight]
    assert state["master"].dtype == torch.float32 and state["master"].tolist() == [1 + 2**-20] * 3
    assert state["scales"][0].dtype == torch.int8 and state["scales"][0].tolist() == [1, 1]


def test_state_that_only_root_has_and_that_root_has_not():
    for owner in (0, hvd.size() - 1):  # one rank alone has restored its state
        net = model()
        optimizer = with_state(torch.optim.Adam, net, steps=2 if hvd.rank() == owner else 0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        for state in states(optimizer):
            assert len(state) == (4 if owner == 0 else 0)
            assert all(values["step"] == 2 for values in state.values())
    # Each rank uses another head.
    heads = torch.nn.ModuleList(torch.nn.Linear(2, 1) for _ in range(hvd.size()))
    optimizer = torch.optim.Adam(heads.parameters())
    heads[hvd.rank()](torch.ones(2)).sum().backward()
    optimizer.step()
    optimizer.state["of no parameter"] = hvd.rank()
    hvd.broadcast_optimizer_state(optimizer, root_rank=hvd.size() - 1)
    for state in states(optimizer):
        assert sorted(state) == [2 * hvd.size() - 2, 2 * hvd.size() - 1]
    assert optimizer.state["of no parameter"] == hvd.size() - 1


def test_state_that_is_none():
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for parameter in net.parameters():
        optimizer.state[parameter]["momentum_buffer"] = None if hvd.rank() == 0 else torch.ones_like(parameter)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert all(values == {"momentum_buffer": None} for state in states(optimizer) for values in state.values())
    loss_of(net).backward()
    optimizer.step()
    assert same_everywhere(net)


def test_options_and_tensors_stay_where_they_are():
    net = model()
    optimizer = with_state(torch.optim.Adam, net, lr=0.1 * (hvd.rank() + 1))
    group, state = optimizer.param_groups[0], optimizer.state[net[0].weight]["exp_avg"]
    group["weight"] = torch.tensor(float(hvd.rank()))
    if hvd.rank() != 0:
        group["only here"] = 1
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0] is group and group["lr"] == 0.1 and group["weight"] == 0
    assert "only here" not in group and optimizer.state[net[0].weight]["exp_avg"] is state


def test_ranks_with_other_parameters_are_told():
    if hvd.size() == 1:
        return
    last = hvd.size() - 1
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2 if hvd.rank() == last else 1))
    with raises(hvd.HorovodInternalError, f"1.bias is float32 [2] on rank {last} and float32 [1] on rank 0"):
        hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with raises(
        hvd.HorovodInternalError,
        f"the optimizer of rank {last} is not like that of rank 0: ",
        "parameter 2 of group 0 is 1.weight float32 [2, 2] instead of 1.weight float32 [1, 2]",
    ):
        hvd.broadcast_optimizer_state(optimizer, root_rank=0, model=net)
    fewer = torch.optim.SGD([*net.parameters()][: 1 if hvd.rank() == last else 2], lr=0.1)
    with raises(hvd.HorovodInternalError, "group 0 has 1 parameters instead of 2"):
        hvd.broadcast_optimizer_state(fewer, root_rank=0)
    missing = {"a": torch.ones(1)} if hvd.rank() == last else {"a": torch.ones(1), "b": torch.ones(1)}
    with raises(hvd.HorovodInternalError, f"b is absent on rank {last} and float32 [1] on rank 0"):
        hvd.broadcast_parameters(missing, root_rank=0)
    sparse = torch.optim.SGD(net[0].parameters(), lr=0.1)
    sparse.state[net[0].weight] = {"rows": torch.eye(2).to_sparse()}
    with raises(ValueError, "Tensor type sparse torch.float32, of the optimizer's state, is not supported."):
        hvd.broadcast_optimizer_state(sparse, root_rank=0)


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
        {"groups": 2},
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


def test_loading_begins_anew():
    net = model()
    plain = torch.optim.SGD(net.parameters(), lr=0.1)
    optimizer = hvd.DistributedOptimizer(plain, net.named_parameters(), backward_passes_per_step=2)
    state = optimizer.state_dict()
    for passes in (1, 2):  # one is still counted; all gradients are on their way
        for _ in range(passes):
            loss_of(net, own_share()).backward()
        optimizer.load_state_dict(state)
        optimizer.zero_grad()
    for _ in range(2):
        loss_of(net, own_share()).backward()
    optimizer.step()
    assert same_everywhere(net)


def test_added_parameters_are_trained_together():
    for named in (True, False):
        net = model()
        plain = torch.optim.SGD(net[2].parameters(), lr=0.1)
        optimizer = hvd.DistributedOptimizer(plain, net.named_parameters() if named else None)
        optimizer.add_param_group({"params": net[0].parameters(), "lr": 0.01})
        before = net[0].weight.detach().clone()
        for _ in range(2):
            optimizer.zero_grad()
            loss_of(net, own_share()).backward()
            optimizer.step()
        assert same_everywhere(net) and not torch.equal(net[0].weight, before)


def test_groups_have_the_order_of_the_first_rank():
    net = model()
    own = list(net.parameters())[:: -1 if hvd.rank() % 2 else 1]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(own, lr=0.1), net.named_parameters(), groups=3)
    loss_of(net, own_share()).backward()
    optimizer.step()
    assert same_everywhere(net)
    if hvd.size() > 1:
        net[0].bias.requires_grad_(hvd.rank() == 0)
        with raises(ddl.Mismatch, "parameter 0.bias is trained on rank 0 and not on rank 1"):
            hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), groups=2)


def test_old_names_of_arguments():
    net = model()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), num_groups=1)
        hvd.allreduce(torch.ones(1), average=True)
    found = [(one.category, str(one.message)) for one in caught]
    assert [category for category, _ in found] == [DeprecationWarning] * 2, found
    assert "num_groups" in found[0][1] and "average" in found[1][1]


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


def embedding(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Embedding(6, 2, sparse=True)


def test_sparse_with_predivide_is_averaged():
    results = []
    for predivide in (1.0, 2.0):
        table = embedding()
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(table.parameters(), lr=0.1), gradient_predivide_factor=predivide
        )
        table(torch.tensor([hvd.rank(), 5])).sum().backward()
        optimizer.step()
        results.append(table.weight.detach())
    assert torch.allclose(results[0], results[1]) and torch.allclose(results[0][5], embedding().weight[5] - 0.1)


def test_groups_with_sparse_and_with_frozen_parameters_complete():
    torch.manual_seed(1)
    net = torch.nn.ModuleDict({"table": embedding(), "dense": torch.nn.Linear(2, 1), "frozen": torch.nn.Linear(2, 1)})
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), groups=[list(net.parameters())]
    )
    for is_used in (True, False):
        # In the second step the last rank has no gradient of the table.
        optimizer.zero_grad(set_to_none=True)
        rows = net["table"](torch.tensor([hvd.rank(), 5]))
        if not is_used and hvd.rank() == hvd.size() - 1:
            rows = torch.ones(2, 2)
        net["dense"](rows).sum().backward()
        optimizer.step()
        assert same_everywhere(net)
        net["frozen"].requires_grad_(False)


def mixed():
    torch.manual_seed(1)
    layers = {name: torch.nn.Linear(2, 1) for name in ("a", "b", "unused", "frozen")}
    return torch.nn.ModuleDict({"table": embedding(), **layers})


def trained_in_groups(net, optimizer, passes=1):
    """Each rank uses one of two layers, and nobody uses another one. A fourth is frozen after the optimizer was made."""
    net["frozen"].requires_grad_(False)
    used = net["a" if hvd.rank() % 2 == 0 else "b"]
    for step in range(3):
        optimizer.zero_grad()
        for one in range(passes):
            rows = net["table"](torch.tensor([hvd.rank(), 5]))
            (used(rows) * (hvd.rank() + step + one + 1)).sum().backward()
        optimizer.step()
        if step == 1:
            net["b"].requires_grad_(False)
    return net


def test_groups_change_no_bits():
    """Groups of which a rank uses a part, with sparse and with frozen members."""

    def own_groups(net):
        return [[net["table"].weight, net["a"].weight], [net["b"].bias, *net["unused"].parameters(), net["b"].weight]]

    for passes in (1, 2):
        net = mixed()
        plain = hvd.DistributedOptimizer(
            torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), backward_passes_per_step=passes
        )
        expected = trained_in_groups(net, plain, passes)
        for groups in (lambda _: 1, lambda _: 4, own_groups, lambda net: [list(net.parameters())]):
            for views in (False, True):
                net = mixed()
                optimizer = hvd.DistributedOptimizer(
                    torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), groups=groups(net),
                    backward_passes_per_step=passes, gradient_as_bucket_view=views,
                )
                trained_in_groups(net, optimizer, passes)
                assert all(torch.equal(a, b) for a, b in zip(net.parameters(), expected.parameters())), (passes, views)
        assert same_everywhere(expected)


def test_groups_of_two_sets_are_apart():
    """The groups and parameters of two optimizers have the same names, and are on their way at the same time."""
    if hvd.size() == 1:
        return
    inside = hvd.add_process_set(range(hvd.size() - 1))
    for views in (False, True):
        nets = [model(), model()]
        optimizers = [
            hvd.DistributedOptimizer(
                torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), groups=2, process_set=one,
                gradient_as_bucket_view=views,
            )
            for net, one in zip(nets, (hvd.global_process_set, inside))
        ]
        for net in nets[:: -1 if hvd.rank() % 2 else 1]:
            loss_of(net, own_share()).backward()
        for optimizer in optimizers:
            optimizer.step()
        assert same_everywhere(nets[0])
        weights = hvd.allgather_object(nets[1][0].weight.detach())
        assert all(torch.equal(one, weights[0]) for one in weights[:-1]) and not torch.equal(weights[-1], weights[0])
    hvd.remove_process_set(inside)


def test_sparse_on_one_rank_and_dense_on_another_is_an_error():
    if hvd.size() == 1:
        return
    table = torch.nn.Embedding(6, 2, sparse=hvd.rank() == 0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=0.1), table.named_parameters())
    table(torch.tensor([0])).sum().backward()
    with raises(hvd.HorovodInternalError, "allreduce.weight"):
        optimizer.step()


def test_sparse_as_dense_keeps_the_gradient_sparse():
    table = embedding()
    optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(table.parameters())), sparse_as_dense=True)
    table(torch.tensor([hvd.rank(), 5])).sum().backward()
    optimizer.step()
    assert same_everywhere(table) and (hvd.size() == 1 or not torch.equal(table.weight[0], embedding().weight[0]))


def test_a_rank_outside_the_set_trains_by_itself():
    if hvd.size() == 1:
        return
    inside = hvd.add_process_set(range(hvd.size() - 1))
    net = model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), process_set=inside)
    names = set(optimizer._parameter_names.values())
    assert len(names) == 4 and all(one == names for one in hvd.allgather_object(names))
    loss_of(net, own_share()).backward()
    own = net[0].weight.grad.clone()
    optimizer.step()
    if not inside.included():
        assert torch.equal(net[0].weight.grad, own)
    weights = hvd.allgather_object(net[0].weight.detach())
    assert all(torch.equal(one, weights[0]) for one in weights[:-1]) and not torch.equal(weights[-1], weights[0])
    hvd.remove_process_set(inside)


def test_hooks_of_an_optimizer_that_others_share_no_more():
    """The last optimizer of the parameters is that of a set of one rank, which submits nothing."""
    if hvd.size() == 1:
        return
    alone = hvd.add_process_set([0])
    net = model()
    for inside in (hvd.global_process_set, alone, hvd.global_process_set):
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), process_set=inside
        )
        for _ in range(2 if inside is alone else 1):  # the hook of the first one would refuse the second pass
            loss_of(net, own_share()).backward()
        optimizer.step()
        optimizer.zero_grad()
    hvd.remove_process_set(alone)


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


def deltas_of_adasum(optimizer_of, steps, passes=1):
    """A model that each rank trains by hand: its own step, and then the sum by Adasum of what the steps changed."""
    net = model()
    optimizer = optimizer_of(net)
    for step in range(steps):
        optimizer.zero_grad()
        for _ in range(passes):
            loss_of(net, own_share()).backward()
        before = [p.detach().clone() for p in net.parameters()]
        optimizer.step()
        for p, start in zip(net.parameters(), before if hvd.size() > 1 else []):
            p.data.copy_(start + hvd.allreduce(p.data - start, op=hvd.Adasum))
    return net


def test_adasum_combines_what_local_steps_change():
    def sgd(net):
        return torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def adam(net):
        return torch.optim.Adam(net.parameters(), lr=0.01)

    for optimizer_of in (sgd, adam):
        for options in ({}, {"groups": 2}, {"backward_passes_per_step": 2}):
            passes = options.get("backward_passes_per_step", 1)
            net = model()
            optimizer = hvd.DistributedOptimizer(optimizer_of(net), net.named_parameters(), op=hvd.Adasum, **options)
            before = loss_of(net).item()
            for _ in range(5):
                optimizer.zero_grad()
                for _ in range(passes):
                    loss_of(net, own_share()).backward()
                optimizer.step()
            by_hand = deltas_of_adasum(optimizer_of, 5, passes)
            assert same_everywhere(net) and loss_of(net).item() < before
            assert all(torch.equal(p, q) for p, q in zip(net.parameters(), by_hand.parameters()))


def test_adasum_clips_counts_passes_and_compresses():
    net = model()
    plain = torch.optim.SGD(net.parameters(), lr=0.05)
    optimizer = hvd.DistributedOptimizer(plain, op=hvd.Adasum, compression=hvd.Compression.fp16)
    start = [p.detach().clone() for p in net.parameters()]
    loss_of(net, own_share()).backward()
    if hvd.size() > 1:
        with raises(AssertionError, "backward_passes_per_step"):
            loss_of(net, own_share()).backward()
    # Each rank clips its own gradients.
    optimizer.synchronize()
    for p in net.parameters():
        p.grad.clamp_(-1e-3, 1e-3)
    with optimizer.skip_synchronize():
        optimizer.step()
    assert same_everywhere(net)
    most = max((p - q).abs().max().item() for p, q in zip(net.parameters(), start))
    assert 0 < most <= 0.05 * 1e-3 * hvd.size() * 1.01, most
    # A parameter without a gradient, and a closure that is called again and again.
    extra = torch.nn.Parameter(torch.ones(3))
    plain = torch.optim.LBFGS([*net.parameters(), extra], lr=0.5, max_iter=4)
    optimizer = hvd.DistributedOptimizer(plain, op=hvd.Adasum)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(net, own_share())
        loss.backward()
        return loss

    before = loss_of(net).item()
    for _ in range(2):
        optimizer.step(closure)
    assert same_everywhere(net) and loss_of(net).item() < before and torch.equal(extra, torch.ones(3))


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
    with raises(ValueError, "gradient_predivide_factor"):
        hvd.DistributedOptimizer(plain, named, op=hvd.Adasum, gradient_predivide_factor=2.0)


if __name__ == "__main__":
    run(globals(), ddl.rank())
