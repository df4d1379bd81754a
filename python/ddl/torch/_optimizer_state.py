"""The state and options of an optimizer, as root has them, on all ranks."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Tuple

import torch

import ddl
from ddl import _horovod
from ddl._horovod import ProcessSet, broadcast_object, global_process_set, raise_on_all
from ddl.errors import Mismatch
from ddl.torch._parameters import broadcast_tensors, described
from ddl.torch._tensors import TYPES


# Of the parameters of each group: name, or "", and type and shape.
_Shapes = List[List[Tuple[str, str]]]


@dataclass
class _Place:
    """Stands for a tensor of root's."""

    dtype: torch.dtype
    shape: torch.Size
    is_beside: bool  # on the device of its parameter; else it is on the host

    def tensor(self, present: Any, parameter: torch.Tensor) -> torch.Tensor:
        """Where root's elements go on this rank: what is present, if it is such a tensor."""
        device = parameter.device if self.is_beside else torch.device("cpu")
        if isinstance(present, torch.Tensor) and not present.is_sparse:
            if (present.dtype, present.shape, present.device) == (self.dtype, self.shape, device):
                return present
        if self.shape == parameter.shape:  # with its strides, too
            return torch.empty_like(parameter, dtype=self.dtype, device=device, requires_grad=False)
        return torch.empty(self.shape, dtype=self.dtype, device=device)


@dataclass
class _Description:
    """Root's optimizer, but for the elements of its tensors."""

    parameters: _Shapes
    options: list[dict[str, Any]]  # of each group
    state: dict[int, Any]  # of parameters that have any, by their numbers
    other: dict[Any, Any]  # state with other keys


def _described(value: Any, parameter: torch.Tensor, tensors: list[torch.Tensor]) -> Any:
    """The value with a place for each tensor, which is appended to tensors."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return _Place(value.dtype, value.shape, value.device == parameter.device)
    if isinstance(value, dict):
        return {name: _described(one, parameter, tensors) for name, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_described(one, parameter, tensors) for one in value)
    return value


def _built(value: Any, present: Any, parameter: torch.Tensor, tensors: list[torch.Tensor]) -> Any:
    """The value that was described, with a tensor at each place, which is appended to tensors. No element is cast."""
    if isinstance(value, _Place):
        tensors.append(value.tensor(present, parameter))
        return tensors[-1]
    if isinstance(value, dict):
        had = present if isinstance(present, dict) else {}
        return {name: _built(one, had.get(name), parameter, tensors) for name, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_built(one, None, parameter, tensors) for one in value)
    return value


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _first_of(group: dict[str, Any]) -> torch.Tensor:
    """The parameter beside which a group's options lie."""
    return group["params"][0] if group["params"] else torch.empty(0)


def _names(optimizer: torch.optim.Optimizer, model: torch.nn.Module | None) -> dict[int, str]:
    """Of parameters, by id, as far as they are known."""
    if model is not None:
        return {id(parameter): name for name, parameter in model.named_parameters()}
    named = getattr(optimizer, "_ddl", None)
    return {id(parameter): name for parameter, name in named.names.items()} if named is not None else {}


def _shapes(optimizer: torch.optim.Optimizer, model: Any) -> _Shapes:
    names = _names(optimizer, model)
    return [[(names.get(id(one), ""), described(one)) for one in group["params"]] for group in optimizer.param_groups]


def _description(optimizer: torch.optim.Optimizer, model: Any, tensors: list[torch.Tensor]) -> _Description:
    parameters = _parameters(optimizer)
    options = [
        _described({name: one for name, one in group.items() if name != "params"}, _first_of(group), tensors)
        for group in optimizer.param_groups
    ]
    state = {
        number: _described(optimizer.state[parameter], parameter, tensors)
        for number, parameter in enumerate(parameters)
        if parameter in optimizer.state
    }
    other = {
        key: _described(value, parameters[0], tensors)
        for key, value in optimizer.state.items()
        if not isinstance(key, torch.Tensor)
    }
    return _Description(_shapes(optimizer, model), options, state, other)


def _difference(root: _Shapes, mine: _Shapes, root_rank: int) -> Mismatch | None:
    """The first one between the parameters of root and of this rank."""
    what = None
    for i, (group, own) in enumerate(zip(root, mine)):
        for j, ((name, shape), (own_name, own_shape)) in enumerate(zip(group, own)):
            if shape != own_shape and what is None:
                what = f"parameter {j} of group {i} is {own_name} {own_shape} instead of {name} {shape}"
        if len(group) != len(own) and what is None:
            what = f"group {i} has {len(own)} parameters instead of {len(group)}"
    if len(root) != len(mine) and what is None:
        what = f"it has {len(mine)} groups of parameters instead of {len(root)}"
    if what is None:
        return None
    return Mismatch(
        f"the optimizer of rank {ddl.rank()} is not like that of rank {root_rank}: {' '.join(what.split())}; make "
        "model and optimizer alike on all ranks"
    )


def _unsupported(tensors: list[torch.Tensor]) -> ValueError | None:
    for tensor in tensors:
        if tensor.is_sparse or tensor.dtype not in TYPES:
            kind = "sparse " if tensor.is_sparse else ""
            return ValueError(f"Tensor type {kind}{tensor.dtype}, of the optimizer's state, is not supported.")
    return None


def _take(optimizer: torch.optim.Optimizer, root: _Description, tensors: list[torch.Tensor]) -> None:
    """Makes this rank's state and options those of root, but for the elements of tensors."""
    for group, options in zip(optimizer.param_groups, root.options):
        built = _built(options, group, _first_of(group), tensors)
        for name in set(group) - set(built) - {"params"}:
            del group[name]
        group.update(built)
    parameters = _parameters(optimizer)
    state: dict[Any, Any] = {}
    for number, values in root.state.items():
        parameter = parameters[number]
        state[parameter] = _built(values, optimizer.state.get(parameter), parameter, tensors)
    for key, values in root.other.items():
        state[key] = _built(values, optimizer.state.get(key), parameters[0], tensors)
    optimizer.state.clear()
    optimizer.state.update(state)


def _leave_zeros(optimizer: torch.optim.Optimizer, model: torch.nn.Module | None) -> None:
    """Gradients where Horovod leaves them. Those of sparse parameters stay absent: zeros would make them dense."""
    sparse = {id(part.weight) for part in (model.modules() if model else ()) if getattr(part, "sparse", False)}
    for parameter in () if isinstance(optimizer, torch.optim.SparseAdam) else _parameters(optimizer):
        if parameter.requires_grad and parameter.grad is None and id(parameter) not in sparse:
            parameter.grad = torch.zeros_like(parameter)


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: torch.nn.Module | None = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Root's state and options, such as the learning rate, in the optimizers of all ranks, which have the same
    parameters. State that root does not have is dropped. model: only for the names of parameters in messages."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    if _horovod.acts_as_horovod and not optimizer.state:
        _leave_zeros(optimizer, model)
    sharded = getattr(getattr(optimizer, "_ddl", None), "has_own_state", None)
    if sharded is not None:
        problem = "each rank has its own part of the state of a sharded optimizer: load the state on every rank"
        raise_on_all(ValueError(problem) if sharded() else None, process_set)
    is_root = ddl.rank() == root_rank
    tensors: list[torch.Tensor] = []
    root = _description(optimizer, model, tensors) if is_root else None
    root = broadcast_object(root, root_rank, process_set=process_set)
    if is_root:
        problem = _unsupported(tensors)
    else:
        problem = _difference(root.parameters, _shapes(optimizer, model), root_rank)
    raise_on_all(problem, process_set)
    if not is_root:
        _take(optimizer, root, tensors)
    broadcast_tensors([(f"optimizer.{i}", tensor) for i, tensor in enumerate(tensors)], root_rank, process_set)
