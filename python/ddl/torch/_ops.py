"""Horovod's operations on tensors of PyTorch. Every tensor is a named one of libddl."""
from __future__ import annotations

import itertools
import threading
from typing import Any, Callable, Sequence

import torch

import ddl
from ddl._context import context
from ddl._library import NULL, ffi, lib
from ddl._tensors import AsyncOptions, hand_over
from ddl.errors import check
from ddl.torch._compression import Compression
from ddl.torch._sets import ProcessSet, global_process_set, set_of


class _Op:
    """An operation, by Horovod's name."""

    def __init__(self, name: str, number: int | None):
        self.name, self.number = name, number

    def __repr__(self) -> str:
        return self.name


Average = _Op("Average", ddl.AVERAGE)
Sum = _Op("Sum", ddl.SUM)
Min = _Op("Min", ddl.MIN)
Max = _Op("Max", ddl.MAX)
Product = _Op("Product", ddl.PRODUCT)
Adasum = _Op("Adasum", None)

_TYPES = {
    torch.uint8: lib.DDL_UINT8,
    torch.int8: lib.DDL_INT8,
    torch.int16: lib.DDL_INT16,
    torch.int32: lib.DDL_INT32,
    torch.int64: lib.DDL_INT64,
    torch.float16: lib.DDL_FLOAT16,
    torch.bfloat16: lib.DDL_BFLOAT16,
    torch.float32: lib.DDL_FLOAT32,
    torch.float64: lib.DDL_FLOAT64,
    torch.bool: lib.DDL_BOOL,
}
for _name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
    if hasattr(torch, _name):  # since 2.1
        _TYPES[getattr(torch, _name)] = getattr(lib, "DDL_" + _name.upper())


def op_of(average: bool | None, op: _Op | None) -> _Op:
    if average is not None:
        if op is not None:
            raise ValueError("average is an old name for op; give op alone")
        return Average if average else Sum
    op = Average if op is None else op
    if op.number is None:
        raise NotImplementedError("Adasum is not there; Average and Sum are")
    return op


def checked(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that libddl can take, or a ValueError or TypeError."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a tensor is needed, not a {type(tensor).__name__}: torch.tensor() makes one")
    if tensor.dtype not in _TYPES or tensor.is_sparse:
        kind = "sparse " if tensor.is_sparse else ""
        raise ValueError(f"Tensor type {kind}{tensor.dtype} is not supported.")
    if not tensor.is_contiguous():
        raise ValueError("Tensor is required to be contiguous.")
    return tensor


def _stream_of(tensor: torch.Tensor) -> Any:
    return ffi.cast("void *", torch.cuda.current_stream(tensor.device).cuda_stream) if tensor.is_cuda else NULL


def _address(tensor: torch.Tensor) -> Any:
    return ffi.cast("void *", tensor.data_ptr())


# Open tensors, by the numbers that the program has.

_numbers = itertools.count(1)
_open: dict[int, tuple[Any, Callable[[], Any], Any]] = {}
_lock = threading.Lock()


def _opened(handle: Any, result: Callable[[], Any], keeps: Any) -> int:
    with _lock:
        number = next(_numbers)
        _open[number] = (handle, result, keeps)
    return number


def poll(handle: int) -> bool:
    """Whether synchronize() would return at once."""
    with _lock:
        one = _open.get(handle)
    if one is None:
        return True
    handles = one[0] if isinstance(one[0], list) else [one[0]]
    done = ffi.new("int32_t *")
    for each in handles:
        check(lib.ddl_test(each, done))
        if done[0] != 1:
            return False
    return True


def synchronize(handle: int) -> Any:
    """Waits for a tensor, and returns its result; None: the number is unknown, or has been used."""
    with _lock:
        one = _open.pop(handle, None)
    if one is None:
        return None
    handles, result, keeps = one
    if isinstance(handles, list):
        status = lib.ddl_wait_all(ffi.new("ddl_handle *[]", handles), len(handles))
    else:
        status = lib.ddl_wait(handles)
    del keeps
    check(status)
    return result()


_counters: dict[Any, Any] = {}


def _name(call: str, name: str | None, process_set: ProcessSet) -> bytes:
    """A name that all ranks of the set give if they make the same calls in the same order."""
    if name is None:
        key = (call, set_of(process_set).number)
        name = f"noname.{next(_counters.setdefault(key, itertools.count(1)))}"
    return f"{call}.{name}".encode()


def _options(
    tensor: torch.Tensor,
    process_set: ProcessSet,
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: str | None = None,
    group_size: int = 0,
    shape: Sequence[int] | None = None,
) -> Any:
    return AsyncOptions(
        set_of(process_set),
        tensor.shape if shape is None else shape,
        _stream_of(tensor),
        prescale=prescale,
        postscale=postscale,
        group=group,
        group_size=group_size,
        zeros_if_joined=True,
    )


def _allreduce_handle(
    tensor: torch.Tensor,
    output: torch.Tensor,
    name: bytes,
    op: _Op,
    options: Any,
) -> Any:
    return hand_over(
        lib.ddl_allreduce_async,
        name,
        _address(tensor),
        _address(output),
        tensor.numel(),
        _TYPES[tensor.dtype],
        op.number,
        options.pointer,
    )


def _reduce(
    tensor: torch.Tensor,
    output: torch.Tensor,
    name: str | None,
    op: _Op,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> int:
    options = _options(checked(tensor), process_set, prescale, postscale)
    handle = _allreduce_handle(tensor, output, _name("allreduce", name, process_set), op, options)
    return _opened(handle, lambda: output, (tensor, output))


def allreduce_async(
    tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
) -> int:
    """Hands over a tensor for an allreduce; synchronize() gives a new tensor."""
    op = op_of(average, op)
    return _reduce(tensor, torch.empty_like(checked(tensor)), name, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(
    tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
) -> int:
    """The same in place."""
    return _reduce(tensor, tensor, name, op_of(average, op), prescale_factor, postscale_factor, process_set)


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale, postscale, process_set):
        ctx.arguments = (op, prescale, postscale, process_set)
        return synchronize(
            _reduce(tensor, torch.empty_like(checked(tensor)), name, op, prescale, postscale, process_set)
        )

    @staticmethod
    def backward(ctx, gradient):
        op, prescale, postscale, process_set = ctx.arguments
        return (
            _Allreduce.apply(gradient.contiguous(), None, op, prescale, postscale, process_set),
            None,
            None,
            None,
            None,
            None,
        )


def allreduce(
    tensor,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """The ranks' tensors combined, in a new tensor. With a gradient: that is combined alike."""
    op = op_of(average, op)
    small, kept = compression.compress(checked(tensor))
    result = _Allreduce.apply(small, name, op, prescale_factor, postscale_factor, process_set)
    return compression.decompress(result, kept)


def allreduce_(
    tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
):
    return synchronize(
        allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set)
    )


def _grouped(
    tensors: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    name: str | None,
    op: _Op,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> int:
    if not tensors:
        raise ValueError("a group needs at least one tensor")
    whole = _name("grouped_allreduce", name, process_set).decode()
    for tensor in tensors:
        checked(tensor)
    handles = []
    for i, (tensor, output) in enumerate(zip(tensors, outputs)):
        options = _options(tensor, process_set, prescale, postscale, whole, len(tensors))
        handles.append(_allreduce_handle(tensor, output, f"{whole}.{i}".encode(), op, options))
    return _opened(handles, lambda: list(outputs), (tensors, outputs))


def grouped_allreduce_async(
    tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
) -> int:
    """Hands over several tensors, which are carried out together; synchronize() gives a list."""
    outputs = [torch.empty_like(checked(tensor)) for tensor in tensors]
    return _grouped(
        tensors, outputs, name, op_of(average, op), prescale_factor, postscale_factor, process_set
    )


def grouped_allreduce_async_(
    tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
) -> int:
    return _grouped(
        tensors, tensors, name, op_of(average, op), prescale_factor, postscale_factor, process_set
    )


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale, postscale, process_set, *tensors):
        ctx.arguments = (op, prescale, postscale, process_set)
        outputs = [torch.empty_like(checked(tensor)) for tensor in tensors]
        return tuple(synchronize(_grouped(tensors, outputs, name, op, prescale, postscale, process_set)))

    @staticmethod
    def backward(ctx, *gradients):
        whole = [gradient.contiguous() for gradient in gradients]
        return (None, None, None, None, None, *_GroupedAllreduce.apply(None, *ctx.arguments, *whole))


def grouped_allreduce(
    tensors,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    op = op_of(average, op)
    small, kept = zip(*(compression.compress(tensor) for tensor in tensors))
    results = _GroupedAllreduce.apply(name, op, prescale_factor, postscale_factor, process_set, *small)
    return [compression.decompress(result, one) for result, one in zip(results, kept)]


def grouped_allreduce_(
    tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
):
    return synchronize(
        grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set)
    )


# Gathers, whose results libddl allocates.


class _GpuMemory:
    """Memory of a GPU that libddl has allocated, by the interface that PyTorch takes."""

    def __init__(self, address: int, bytes_: int):
        self.__cuda_array_interface__ = {
            "shape": (bytes_,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def _taken(memory: Any, elements: int, like: torch.Tensor) -> torch.Tensor:
    """What libddl has allocated, as a new tensor with the rows of another one; frees it."""
    row = like[0:1].numel() if like.dim() > 1 and like.shape[0] else 1
    if like.dim() > 1 and not like.shape[0]:
        row = 1
        for length in like.shape[1:]:
            row *= length
    shape = (elements // max(row, 1), *like.shape[1:])
    result = torch.empty(shape, dtype=like.dtype, device=like.device)
    size = result.numel() * result.element_size()
    if size and like.is_cuda:
        source = torch.as_tensor(_GpuMemory(int(ffi.cast("uintptr_t", memory[0])), size), device=like.device)
        result.view(-1).view(torch.uint8).copy_(source)
        torch.cuda.current_stream(like.device).synchronize()
    elif size:
        ffi.memmove(ffi.cast("char *", result.data_ptr()), memory[0], size)
    check(lib.ddl_free(context(), memory[0]))
    return result


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    checked(tensor)
    return tensor if tensor.dim() else tensor.reshape(1)


def allgather_async(tensor, name=None, process_set=global_process_set) -> int:
    """Hands over a tensor; synchronize() gives those of all ranks along the first dimension, which may differ."""
    rows = _rows(tensor)
    memory, counts = ffi.new("void **"), ffi.new("uint64_t[]", set_of(process_set).size or 0)
    options = _options(tensor, process_set, shape=rows.shape[1:])
    handle = hand_over(
        lib.ddl_allgatherv_async,
        _name("allgather", name, process_set),
        _address(rows),
        rows.numel(),
        memory,
        counts,
        _TYPES[rows.dtype],
        options.pointer,
    )
    return _opened(handle, lambda: _taken(memory, sum(counts), rows), rows)


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows, ctx.process_set = _rows(tensor).shape[0], process_set
        return synchronize(allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        average = allreduce(gradient.contiguous(), op=Average, process_set=ctx.process_set)
        mine = torch.tensor([ctx.rows])
        rows = synchronize(allgather_async(mine, None, ctx.process_set)).tolist()
        begin = sum(rows[: ctx.process_set.rank()])
        return average.narrow(0, begin, ctx.rows), None, None


def allgather(tensor, name=None, process_set=global_process_set):
    return _Allgather.apply(tensor, name, process_set)


def _together(numbers: Sequence[int]) -> int:
    """One number for several open tensors, whose results are a list."""
    with _lock:
        parts = [_open.pop(number) for number in numbers]
    return _opened([part[0] for part in parts], lambda: [part[1]() for part in parts], parts)


def grouped_allgather_async(tensors, name=None, process_set=global_process_set) -> int:
    whole = _name("grouped_allgather", name, process_set).decode()
    return _together([allgather_async(tensor, f"{whole}.{i}", process_set) for i, tensor in enumerate(tensors)])


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    return synchronize(grouped_allgather_async(tensors, name, process_set))


def _root_in(process_set: ProcessSet, root_rank: int) -> int:
    """Of a rank of the job, its number in the set."""
    set_of(process_set)
    if root_rank not in process_set.ranks:
        raise ValueError(f"root_rank {root_rank} is not in {process_set}")
    return process_set.ranks.index(root_rank)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set) -> int:
    """Hands over a tensor for a broadcast in place. root_rank: its number in the job."""
    root = _root_in(process_set, root_rank)
    options = _options(checked(tensor), process_set)
    handle = hand_over(
        lib.ddl_broadcast_async,
        _name("broadcast", name, process_set),
        _address(tensor),
        tensor.numel(),
        _TYPES[tensor.dtype],
        root,
        options.pointer,
    )
    return _opened(handle, lambda: tensor, tensor)


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set) -> int:
    return broadcast_async_(checked(tensor).detach().clone(), root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.arguments = (root_rank, process_set)
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        root_rank, process_set = ctx.arguments
        average = allreduce(gradient.contiguous(), op=Average, process_set=process_set)
        return (average if ddl.rank() == root_rank else torch.zeros_like(average)), None, None, None


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    return _Broadcast.apply(tensor, root_rank, name, process_set)


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set) -> int:
    """Hands over splits[r] rows for each rank r; None: equal parts. synchronize() gives the rows that came, and, of a
    call with splits, how many from each rank."""
    rows, ranks = _rows(tensor), set_of(process_set).size or 0
    if splits is None:
        if rows.shape[0] % ranks:
            raise ValueError(f"{rows.shape[0]} rows are no {ranks} equal parts; give splits")
        parts = [rows.shape[0] // ranks] * ranks
    else:
        parts = [int(part) for part in splits]
        if len(parts) != ranks or sum(parts) != rows.shape[0] or min(parts, default=0) < 0:
            raise ValueError(f"splits must be {ranks} numbers whose sum is {rows.shape[0]}")
    row = 1
    for length in rows.shape[1:]:
        row *= length
    memory, counts = ffi.new("void **"), ffi.new("uint64_t[]", ranks)
    options = _options(tensor, process_set, shape=rows.shape[1:])
    handle = hand_over(
        lib.ddl_alltoallv_async,
        _name("alltoall", name, process_set),
        _address(rows),
        ffi.new("uint64_t[]", [part * row for part in parts]),
        memory,
        counts,
        _TYPES[rows.dtype],
        options.pointer,
    )

    def result():
        received = [count // max(row, 1) for count in counts]
        output = _taken(memory, sum(counts), rows)
        return output if splits is None else (output, torch.tensor(received, dtype=torch.int32))

    return _opened(handle, result, rows)


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        ranks = set_of(process_set).size or 0
        given = splits if splits is not None else [_rows(tensor).shape[0] // ranks] * ranks
        output, received = synchronize(alltoall_async(tensor, given, name, process_set))
        ctx.received, ctx.process_set = received, process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx, gradient, _):
        output, _ = synchronize(
            alltoall_async(gradient.contiguous(), ctx.received, None, ctx.process_set)
        )
        return output, None, None, None


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    rows, ranks = _rows(tensor), set_of(process_set).size or 1
    if splits is None and rows.shape[0] % ranks:
        raise ValueError(f"{rows.shape[0]} rows are no {ranks} equal parts; give splits")
    output, received = _Alltoall.apply(tensor, splits, name, process_set)
    return output if splits is None else (output, received)


def reducescatter_async(
    tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0
) -> int:
    """Hands over a tensor; synchronize() gives this rank's rows of the combination. The first ranks get more."""
    if op not in (Average, Sum):
        raise ValueError(f"a reducescatter is by Average or Sum, not {op}")
    rows, chosen = _rows(tensor), set_of(process_set)
    ranks, own = chosen.size or 1, chosen.rank or 0
    share, more = divmod(rows.shape[0], ranks)
    parts = [share + (1 if rank < more else 0) for rank in range(ranks)]
    row = rows.numel() // rows.shape[0] if rows.shape[0] else 0
    output = torch.empty((parts[own], *rows.shape[1:]), dtype=rows.dtype, device=rows.device)
    options = _options(tensor, process_set, prescale_factor, postscale_factor)
    handle = hand_over(
        lib.ddl_reduce_scatter_async,
        _name("reducescatter", name, process_set),
        _address(rows),
        _address(output),
        ffi.new("uint64_t[]", [part * row for part in parts]),
        _TYPES[rows.dtype],
        op.number,
        options.pointer,
    )
    return _opened(handle, lambda: output, (rows, output))


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale, postscale):
        ctx.arguments = (op, process_set, prescale, postscale)
        return synchronize(reducescatter_async(tensor, name, op, process_set, prescale, postscale))

    @staticmethod
    def backward(ctx, gradient):
        op, process_set, prescale, postscale = ctx.arguments
        gathered = synchronize(allgather_async(gradient.contiguous(), None, process_set))
        scale = prescale * postscale * (1.0 if op is Average else float(process_set.size()))
        return gathered * scale if scale != 1.0 else gathered, None, None, None, None, None


def reducescatter(
    tensor,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    small, kept = compression.compress(checked(tensor))
    result = _Reducescatter.apply(small, name, op, process_set, prescale_factor, postscale_factor)
    return compression.decompress(result, kept)


def grouped_reducescatter_async(
    tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0
) -> int:
    whole = _name("grouped_reducescatter", name, process_set).decode()
    return _together(
        [
            reducescatter_async(tensor, f"{whole}.{i}", op, process_set, prescale_factor, postscale_factor)
            for i, tensor in enumerate(tensors)
        ]
    )


def grouped_reducescatter(
    tensors,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    small, kept = zip(*(compression.compress(tensor) for tensor in tensors))
    results = synchronize(
        grouped_reducescatter_async(small, name, op, process_set, prescale_factor, postscale_factor)
    )
    return [compression.decompress(result, one) for result, one in zip(results, kept)]


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    """Hands over a sparse tensor; what is returned is called for the result."""
    op = op_of(None, op)
    if op not in (Average, Sum):
        raise ValueError(f"sparse tensors are combined by Average or Sum, not {op}")
    tensor = tensor.coalesce()
    indices = allgather_async(tensor.indices().transpose(0, 1).contiguous(), f"{name}.indices", process_set)
    values = allgather_async(tensor.values().contiguous(), f"{name}.values", process_set)

    def result():
        all_values = synchronize(values)
        if op is Average:
            all_values = all_values / process_set.size()
        all_indices = synchronize(indices).transpose(0, 1)
        return torch.sparse_coo_tensor(all_indices, all_values, tensor.size()).coalesce()

    return result


def barrier(process_set=global_process_set) -> None:
    ddl.barrier(process_set=set_of(process_set))


def join(device: int = -1) -> int:
    """No more data from this rank; returns the rank that joined last."""
    return ddl.join()
