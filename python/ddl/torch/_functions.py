"""What all ranks get from one: parameters, the state of an optimizer, objects."""
from __future__ import annotations

from typing import Any

import torch

import ddl
from ddl.torch._handles import synchronize
from ddl.torch._moves import broadcast_async_, root_in
from ddl.torch._sets import ProcessSet, global_process_set, set_of


def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None, process_set=global_process_set) -> Any:
    """Root's object, on every rank."""
    return ddl.broadcast_object(obj, root_in(process_set, root_rank), process_set=set_of(process_set))


def allgather_object(obj: Any, name: str | None = None, process_set=global_process_set) -> list[Any]:
    """Every rank's object, by rank."""
    return ddl.allgather_object(obj, process_set=set_of(process_set))


def broadcast_parameters(params: Any, root_rank: int = 0, process_set: ProcessSet = global_process_set) -> None:
    """Root's values in the tensors of a state_dict(), or of a list of tensors or of (name, tensor)."""
    if isinstance(params, dict):
        pairs = sorted(params.items())
    elif isinstance(params, list):
        pairs = [one if isinstance(one, tuple) else (str(i), one) for i, one in enumerate(params)]
    else:
        raise ValueError(f"invalid params of type: {type(params)}; give model.state_dict() or a list")
    handles = []
    copies = []
    with torch.no_grad():
        for name, tensor in pairs:
            if not isinstance(tensor, torch.Tensor):
                continue
            whole = tensor.data
            if not whole.is_contiguous():
                whole = whole.contiguous()
                copies.append((tensor, whole))
            handles.append(broadcast_async_(whole, root_rank, f"parameter.{name}", process_set))
        for handle in handles:
            synchronize(handle)
        for tensor, whole in copies:
            tensor.data.copy_(whole)


def _fill_state(optimizer: torch.optim.Optimizer) -> None:
    """An optimizer that has made no step has no state: one step with zero gradients makes it."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    before = [(p, p.detach().clone(), p.grad) for p in parameters]
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    own = optimizer._ddl.own if hasattr(optimizer, "_ddl") else type(optimizer)
    own.step(optimizer)
    with torch.no_grad():
        # A weight decay has moved them.
        for parameter, value, gradient in before:
            parameter.copy_(value)
            parameter.grad = gradient


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: torch.nn.Module | None = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Root's state and options, such as the learning rate, in the optimizers of all ranks."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    is_root = ddl.rank() == root_rank
    has_state = broadcast_object(bool(optimizer.state_dict()["state"]), root_rank, process_set=process_set)
    if has_state and not optimizer.state_dict()["state"]:
        _fill_state(optimizer)
    state = optimizer.state_dict()
    # The tensors by themselves, and all the rest as one object.
    tensors: list[tuple[str, torch.Tensor]] = []
    rest: dict[Any, Any] = {"groups": state["param_groups"], "state": {}}
    for key in sorted(state["state"]):
        for name, value in sorted(state["state"][key].items(), key=lambda item: str(item[0])):
            if isinstance(value, torch.Tensor):
                tensors.append((f"{key}.{name}", value))
            else:
                rest["state"].setdefault(key, {})[name] = value
    rest = broadcast_object(rest, root_rank, process_set=process_set)
    if not is_root:
        for key, values in rest["state"].items():
            state["state"].setdefault(key, {}).update(values)
        state["param_groups"] = rest["groups"]
    broadcast_parameters([(f"state.{name}", tensor) for name, tensor in tensors], root_rank, process_set)
    if not is_root:
        optimizer.load_state_dict(state)


def barrier(process_set=global_process_set) -> None:
    ddl.barrier(process_set=set_of(process_set))


def join(device: int = -1) -> int:
    """No more data from this rank; returns the rank that joined last."""
    return ddl.join()
