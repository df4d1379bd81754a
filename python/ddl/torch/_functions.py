"""Objects and parameters that ranks get from each other, and where they wait for each other."""
from __future__ import annotations

import io
import pickle
from typing import Any

import torch

import ddl
from ddl._objects import pickled
from ddl._tensors import numbered
from ddl.errors import Mismatch
from ddl.torch._allreduce import allreduce_async_
from ddl.torch._handles import Sum, named, synchronize
from ddl.torch._moves import allgather_async, broadcast_, broadcast_async_
from ddl.torch._sets import ProcessSet, global_process_set, set_of


def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None, process_set=global_process_set) -> Any:
    """Root's object, on every rank that has not joined."""
    is_root = ddl.rank() == root_rank
    call = named("object", name, process_set).decode()
    data = bytearray(pickled(obj)) if is_root else bytearray()
    size = broadcast_(torch.tensor([len(data)]), root_rank, f"{call}.size", process_set)
    if not is_root:
        data = bytearray(int(size[0]))
    broadcast_(torch.frombuffer(data, dtype=torch.uint8), root_rank, f"{call}.data", process_set)
    return obj if is_root else pickle.loads(data)


def allgather_object(obj: Any, name: str | None = None, process_set=global_process_set) -> list[Any]:
    """Every rank's object, by rank; None for a rank that has joined."""
    call = named("object", name, process_set).decode()
    own = torch.frombuffer(bytearray(pickled((process_set.rank(), obj))), dtype=torch.uint8)
    gathered = synchronize(allgather_async(own, call, process_set))
    data = bytearray(gathered.numel())
    torch.frombuffer(data, dtype=torch.uint8).copy_(gathered)
    stream, objects = io.BytesIO(data), [None] * process_set.size()
    while stream.tell() < len(data):
        rank, one = pickle.load(stream)
        objects[rank] = one
    return objects


def raise_on_all(problem: Exception | None, process_set: ProcessSet) -> None:
    """Raises on every rank the first one that a rank has, so that no other waits for that rank. Collective."""
    for one in allgather_object(problem, process_set=process_set):
        if one is not None:
            raise one


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


def barrier(process_set=global_process_set) -> None:
    """Returns when every rank that has not joined has called it."""
    name = f"barrier.{numbered('barrier', set_of(process_set))}"
    synchronize(allreduce_async_(torch.zeros(1), name=name, op=Sum, process_set=process_set))


def join(device: int = -1) -> int:
    """No more data from this rank; returns the rank that joined last."""
    return ddl.join()
