"""Parameters that ranks get from each other."""
from __future__ import annotations

from typing import Any

import torch

import ddl
from ddl._horovod import ProcessSet, broadcast_object, global_process_set, raise_on_all, synchronize
from ddl.errors import Mismatch
from ddl.torch._moves import broadcast_async_


def broadcast_tensors(tensors: list[tuple[str, torch.Tensor]], root_rank: int, process_set: ProcessSet) -> None:
    """Root's elements in tensors that have the same names, types and shapes on all ranks."""
    wholes = [tensor.data.contiguous() for _, tensor in tensors]
    handles = [
        broadcast_async_(whole, root_rank, f"parameter.{name}", process_set)
        for (name, _), whole in zip(tensors, wholes)
    ]
    for handle in handles:
        synchronize(handle)
    if ddl.rank() != root_rank:
        for (_, tensor), whole in zip(tensors, wholes):
            if whole.data_ptr() != tensor.data_ptr():
                tensor.data.copy_(whole)


def _difference(root: dict[str, str], mine: dict[str, str], root_rank: int) -> Mismatch | None:
    """The first one between what root and this rank would broadcast."""
    for name in (*root, *mine):
        if root.get(name) != mine.get(name):
            return Mismatch(
                f"parameter {name} is {mine.get(name, 'absent')} on rank {ddl.rank()} and "
                f"{root.get(name, 'absent')} on rank {root_rank}; make the models alike on all ranks"
            )
    return None


def described(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).replace('torch.', '')} {list(tensor.shape)}"


def broadcast_parameters(params: Any, root_rank: int = 0, process_set: ProcessSet = global_process_set) -> None:
    """Root's values in the tensors of a state_dict(), or of a list of tensors or of (name, tensor)."""
    if isinstance(params, dict):
        pairs = sorted(params.items())
    elif isinstance(params, list):
        pairs = [one if isinstance(one, tuple) else (str(i), one) for i, one in enumerate(params)]
    else:
        raise ValueError(f"invalid params of type: {type(params)}; give model.state_dict() or a list")
    tensors = [(name, one) for name, one in pairs if isinstance(one, torch.Tensor)]
    mine = {str(name): described(tensor) for name, tensor in tensors}
    root = broadcast_object(mine, root_rank, process_set=process_set)
    raise_on_all(_difference(root, mine, root_rank), process_set)
    broadcast_tensors(tensors, root_rank, process_set)
