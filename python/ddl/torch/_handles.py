"""Tensors that libddl takes, operations, and the numbers of what was handed over."""
from __future__ import annotations

import itertools
import threading
from typing import Any, Callable, Sequence

import torch

import ddl
from ddl._context import _at_end
from ddl._library import NULL, ffi, lib
from ddl._tensors import AsyncOptions, numbered
from ddl.errors import check
from ddl.torch._sets import ProcessSet, set_of


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

TYPES = {
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
for _type in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
    if hasattr(torch, _type):  # since 2.1
        TYPES[getattr(torch, _type)] = getattr(lib, "DDL_" + _type.upper())


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
    if tensor.dtype not in TYPES or tensor.is_sparse:
        kind = "sparse " if tensor.is_sparse else ""
        raise ValueError(f"Tensor type {kind}{tensor.dtype} is not supported.")
    if not tensor.is_contiguous():
        raise ValueError("Tensor is required to be contiguous.")
    return tensor


def stream_of(tensor: torch.Tensor) -> Any:
    return ffi.cast("void *", torch.cuda.current_stream(tensor.device).cuda_stream) if tensor.is_cuda else NULL


def address(tensor: torch.Tensor) -> Any:
    return ffi.cast("void *", tensor.data_ptr())


# Open tensors, by the numbers that the program has.

_numbers = itertools.count(1)
_open: dict[int, tuple[Any, Callable[[], Any], Any, list[tuple[bytes, ProcessSet]]]] = {}
# The names of tensors that the program has not seen to be complete, and their process sets. libddl takes a name again
# as soon as its tensor is complete; an error that depends on the time is of no use to a program.
_names: set[tuple[bytes, ProcessSet]] = set()
_at_end.append(_names.clear)
_lock = threading.Lock()


def opened(handle: Any, result: Callable[[], Any], keeps: Any, name: bytes, process_set: ProcessSet) -> int:
    with _lock:
        number = next(_numbers)
        names = [(name, process_set)]
        _open[number] = (handle, result, keeps, names)
        _names.update(names)
    return number


def _see_complete(names: list[tuple[bytes, ProcessSet]]) -> None:
    with _lock:
        _names.difference_update(names)


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
    _see_complete(one[3])
    return True


def synchronize(handle: int) -> Any:
    """Waits for a tensor, and returns its result; None: the number is unknown, or has been used."""
    with _lock:
        one = _open.pop(handle, None)
    if one is None:
        return None
    handles, result, keeps, names = one
    _see_complete(names)
    if isinstance(handles, list):
        status = lib.ddl_wait_all(ffi.new("ddl_handle *[]", handles), len(handles))
    else:
        status = lib.ddl_wait(handles)
    del keeps
    check(status)
    return result()


def named(call: str, name: str | None, process_set: ProcessSet) -> bytes:
    """The tensor's name, or a number that all ranks of the set give if they make the same calls in the same order."""
    if name is None:
        return f"{call}.noname.{numbered(call, set_of(process_set))}".encode()
    whole = f"{call}.{name}".encode()
    if (whole, process_set) in _names:
        raise ValueError(f'a tensor "{name}" has been handed over before; call synchronize() for it first')
    return whole


def async_options(
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
        stream_of(tensor),
        prescale=prescale,
        postscale=postscale,
        group=group,
        group_size=group_size,
        zeros_if_joined=True,
    )


def rows_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, with a first dimension."""
    checked(tensor)
    return tensor if tensor.dim() else tensor.reshape(1)


def together(numbers: Sequence[int]) -> int:
    """One number for several open tensors, whose results are a list."""
    with _lock:
        parts = [_open.pop(number) for number in numbers]
        number = next(_numbers)
        names = [name for part in parts for name in part[3]]
        _open[number] = ([part[0] for part in parts], lambda: [part[1]() for part in parts], parts, names)
    return number
