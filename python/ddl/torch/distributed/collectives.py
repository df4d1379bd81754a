"""libddl's ordered calls on tensors: contiguous or not, of any type that can be moved."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import torch
import torch.distributed as dist

from ddl._context import ProcessSet, call_options, call_ordered, context
from ddl._library import NULL, ffi, lib
from ddl._tensors import submit
from ddl.errors import Error, check
from ddl.torch._tensors import TYPES, address, stream_of

_NAMES = {
    "SUM": lib.DDL_SUM,
    "AVG": lib.DDL_AVERAGE,
    "PRODUCT": lib.DDL_PRODUCT,
    "MIN": lib.DDL_MIN,
    "MAX": lib.DDL_MAX,
    "BAND": lib.DDL_BIT_AND,
    "BOR": lib.DDL_BIT_OR,
    "BXOR": lib.DDL_BIT_XOR,
}
_OPS = {getattr(dist.ReduceOp, name): op for name, op in _NAMES.items()}

# Newer versions warn, once, where this is not said.
_UNCHECKED = {"check_invariants": False} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}


def op_of(given: Any) -> int:
    kind = getattr(given, "op", given)  # options wrap the enumeration
    op = _OPS.get(kind)
    if op is None:
        raise ValueError(f"libddl has no operation {kind.name}")
    return op


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, if libddl can reach its elements."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a tensor is needed, not a {type(tensor).__name__}")
    if tensor.layout != torch.strided:
        raise ValueError(f"libddl has no tensors of the layout {tensor.layout}, but in an all_reduce of sparse_coo")
    if not tensor.is_cpu and not tensor.is_cuda:
        raise ValueError(f"libddl has tensors of CPUs and of GPUs, and none on the device {tensor.device}")
    tensor = tensor.detach() if tensor.requires_grad else tensor
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError("the tensor is a lazy conjugate or negative, whose memory has other numbers: give "
                         "resolve_conj() or resolve_neg() of it")
    return tensor


def summable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, if libddl can combine its elements."""
    if tensor.dtype not in TYPES:
        raise ValueError(f"libddl combines no elements of {tensor.dtype}")
    return dense(tensor)


def movable(tensor: torch.Tensor) -> tuple[int, int]:
    """How many elements of which type move it: of a type that libddl does not have, the bytes."""
    dtype = TYPES.get(tensor.dtype)
    if dtype is None:
        return tensor.numel() * tensor.element_size(), lib.DDL_UINT8
    return tensor.numel(), dtype


def as_one(tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Tensors that lie one after the other in one memory, as the chunks of a tensor do, as one; else None."""
    first = tensors[0]
    if not hasattr(first, "untyped_storage"):  # before PyTorch 2.0
        return None
    place, size, total = first.data_ptr(), first.element_size(), 0
    for tensor in tensors:
        if tensor.data_ptr() != place + total * size or not tensor.is_contiguous():
            return None
        total += tensor.numel()
    begin = first.storage_offset()
    if (begin + total) * size > first.untyped_storage().nbytes():
        return None
    return torch.as_strided(first, (total,), (1,), begin)


def joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The elements of tensors, one after the other: their own memory if they lie so, else a copy."""
    one = as_one(tensors)
    return torch.cat([tensor.reshape(-1) for tensor in tensors]) if one is None else one


def room_for(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Their own memory if they lie one after the other, else new memory for all their elements."""
    one = as_one(tensors)
    return tensors[0].new_empty(sum(tensor.numel() for tensor in tensors)) if one is None else one


def spread(flat: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """Stores the elements of flat in the tensors, if they do not lie there."""
    if tensors and flat.data_ptr() == tensors[0].data_ptr():
        return
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors])):
        tensor.copy_(part.view(tensor.shape))


def contiguous_room(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or if it is not contiguous, a new one like it."""
    return tensor if tensor.is_contiguous() else torch.empty_like(tensor, memory_format=torch.contiguous_format)


def uint64s(numbers: Sequence[int]) -> Any:
    return ffi.new("uint64_t[]", numbers)


class Collectives:
    """The collectives of a process set. Each returns when this rank's part is done. seconds: its limit, 0 for none."""

    def __init__(self, process_set: ProcessSet):
        self.process_set = process_set
        self.rank, self.size = process_set.rank, process_set.size
        self._submitted = 0
        self._seconds, self._options = 0.0, call_options(process_set, 0.0)  # those of the latest call on a CPU

    def _call(self, function: Callable[..., int], like: torch.Tensor, seconds: float, *arguments: Any) -> None:
        if like.is_cuda:
            call_ordered(function, arguments, self.process_set, seconds, stream_of(like))
            return
        self._call_on_cpu(function, seconds, *arguments)

    def _call_on_cpu(self, function: Callable[..., int], seconds: float, *arguments: Any) -> None:
        if seconds != self._seconds:
            self._seconds, self._options = seconds, call_options(self.process_set, seconds)
        check(function(context(), *arguments, self._options))

    def submit(self, function: Callable[..., int], tensor: torch.Tensor, places: int, how: int) -> Callable[..., None]:
        """Submits a tensor on a GPU as a named tensor, so that the stream on which the program goes on does not wait
        for it. places: how often libddl takes its address. What is returned waits for it."""
        whole = tensor.contiguous()
        self._submitted += 1
        name, arguments = f"torch.{self._submitted}".encode(), (*[address(whole)] * places, *movable(whole), how)
        stream = stream_of(whole)
        handle = submit(function, name, *arguments, process_set=self.process_set, shape=whole.shape, stream=stream)

        def wait(_: float) -> None:
            check(lib.ddl_wait(handle))
            if whole is not tensor:
                tensor.copy_(whole)

        return wait

    def barrier(self, seconds: float) -> None:
        self._call_on_cpu(lib.ddl_barrier, seconds)

    def allreduce(self, tensor: torch.Tensor, op: int, seconds: float) -> None:
        whole = tensor.contiguous()
        place = address(whole)
        self._call(lib.ddl_allreduce, whole, seconds, place, place, whole.numel(), TYPES[whole.dtype], op)
        if whole is not tensor:
            tensor.copy_(whole)

    def allreduce_all(self, tensors: Sequence[torch.Tensor], op: int, seconds: float) -> None:
        """As one call for the tensors of each type."""
        by_type: dict[Any, list[torch.Tensor]] = {}
        for tensor in tensors:
            by_type.setdefault((tensor.dtype, tensor.device), []).append(tensor)
        for same in by_type.values():
            flat = joined(same)
            self.allreduce(flat, op, seconds)
            spread(flat, same)

    def allreduce_sparse(self, tensor: torch.Tensor, seconds: float) -> None:
        """The sum of sparse tensors: all ranks gather the elements of all."""
        own = tensor.detach().coalesce()
        counts = own.indices().new_empty(self.size)
        self.allgather_single(counts, counts.new_tensor([own.values().shape[0]]), seconds)
        indices, values = own.indices().t().contiguous(), own.values().contiguous()
        rows = [(values.new_empty((count, *values.shape[1:])), indices.new_empty((count, indices.shape[1])))
                for count in counts.tolist()]
        self.allgather([one for one, _ in rows], values, seconds)
        self.allgather([one for _, one in rows], indices, seconds)
        all_indices = torch.cat([one for _, one in rows]).t()
        values = torch.cat([one for one, _ in rows])
        with torch.no_grad():  # detach() would not be enough: in older versions it has other elements than the tensor
            tensor.copy_(torch.sparse_coo_tensor(all_indices, values, tensor.shape, **_UNCHECKED).coalesce())

    def reduce(self, tensor: torch.Tensor, op: int, root: int, seconds: float) -> None:
        whole = tensor.contiguous()
        place = address(whole)
        self._call(lib.ddl_reduce, whole, seconds, place, place, whole.numel(), TYPES[whole.dtype], op, root)
        if whole is not tensor:
            tensor.copy_(whole)

    def broadcast(self, tensor: torch.Tensor, root: int, seconds: float) -> None:
        whole = tensor.contiguous()
        self._call(lib.ddl_broadcast, whole, seconds, address(whole), *movable(whole), root)
        if whole is not tensor:
            tensor.copy_(whole)

    def allgather_single(self, output: torch.Tensor, tensor: torch.Tensor, seconds: float) -> None:
        whole, room = tensor.contiguous(), contiguous_room(output)
        self._call(lib.ddl_allgather, whole, seconds, address(whole), address(room), *movable(whole))
        if room is not output:
            output.copy_(room)

    def allgather(self, outputs: Sequence[torch.Tensor], tensor: torch.Tensor, seconds: float) -> None:
        whole, room = tensor.contiguous(), room_for(outputs)
        count, dtype = movable(whole)
        places = address(whole), address(room)
        sizes = [output.numel() for output in outputs]
        if sizes == [whole.numel()] * self.size:
            self._call(lib.ddl_allgather, whole, seconds, *places, count, dtype)
        else:
            part = count // whole.numel() if count else movable(whole.new_empty(1))[0]
            counts = uint64s([size * part for size in sizes])
            self._call(lib.ddl_allgatherv, whole, seconds, *places, counts, dtype)
        spread(room, outputs)

    def gather(self, outputs: Sequence[torch.Tensor], tensor: torch.Tensor, root: int, seconds: float) -> None:
        """outputs: of root, and nothing on the others."""
        whole = tensor.contiguous()
        room = room_for(outputs) if outputs else None
        places = address(whole), NULL if room is None else address(room)
        self._call(lib.ddl_gather, whole, seconds, *places, *movable(whole), root)
        if room is not None:
            spread(room, outputs)

    def scatter(self, output: torch.Tensor, tensors: Sequence[torch.Tensor], root: int, seconds: float) -> None:
        """tensors: of root, and nothing on the others."""
        room = contiguous_room(output)
        flat = joined(tensors) if tensors else None
        places = NULL if flat is None else address(flat), address(room)
        self._call(lib.ddl_scatter, room, seconds, *places, *movable(room), root)
        if room is not output:
            output.copy_(room)

    def reduce_scatter(self, output: torch.Tensor, flat: torch.Tensor, counts: Sequence[int], op: int,
                       seconds: float) -> None:
        room = contiguous_room(output)
        places = address(flat), address(room)
        self._call(lib.ddl_reduce_scatter, flat, seconds, *places, uint64s(counts), TYPES[flat.dtype], op)
        if room is not output:
            output.copy_(room)

    def alltoall_equal(self, room: torch.Tensor, flat: torch.Tensor, seconds: float) -> None:
        """Equal parts, for all ranks."""
        count, dtype = movable(flat)
        self._call(lib.ddl_alltoall, flat, seconds, address(flat), address(room), count // self.size, dtype)

    def alltoall(self, room: torch.Tensor, flat: torch.Tensor, sizes: Sequence[int], room_sizes: Sequence[int],
                 seconds: float) -> None:
        """sizes: how many elements go to each rank; room_sizes: how many this rank has room for from each."""
        count, dtype = movable(flat)
        part = movable(flat.new_empty(1))[0]
        received = uint64s(self.size)
        self._call(lib.ddl_alltoallv, flat, seconds, address(flat), uint64s([size * part for size in sizes]),
                   address(room), movable(room)[0], received, dtype)
        for rank, (come, wanted) in enumerate(zip(received, room_sizes)):
            if come != wanted * part:
                raise Error(f"rank {rank} of the group sent {come // part} elements, and the output of rank {self.rank}"
                            f" has room for {wanted} from it", "mismatch")
