"""Named tensors: submitted from any thread, in any order, and processed while the program computes."""
from __future__ import annotations

import itertools
import math
from typing import Any, Callable, Iterator, Sequence

from ddl._buffers import Buffer, buffer_of, new_like, place_for, stream_of
from ddl._context import SUM, ProcessSet, _at_end, context, members_of, world
from ddl._library import NULL, ffi, lib
from ddl.errors import InvalidArgument, check

# By process set: of calls without a name, their numbers since the ranks have joined, and how often they have joined.
_numbers: dict[tuple[str, int], Iterator[int]] = {}
_joins: dict[int, int] = {}


def _number_anew() -> None:
    _numbers.clear()
    _joins.clear()


_at_end.append(_number_anew)


class Handle:
    """A tensor that was submitted. Its arrays must not be changed until wait() has returned, once."""

    # Nobody waits for them any more, but libddl uses their arrays until it has carried them out.
    _abandoned: list[Handle] = []

    def __init__(self, handle: Any, result: Callable[[], Any], keeps: Any):
        self._handle = handle
        self._result = result
        self._keeps = keeps

    def is_ready(self) -> bool:
        """Whether wait() would return at once."""
        if self._handle is None:
            return True
        done = ffi.new("int32_t *")
        check(lib.ddl_test(self._handle, done))
        return done[0] == 1

    def wait(self) -> Any:
        """Waits until it has been processed, and returns the result. Raises what went wrong with this tensor."""
        if self._handle is None:
            raise InvalidArgument("wait() has been called before")
        handle, self._handle = self._handle, None
        status = lib.ddl_wait(handle)
        keeps, self._keeps = self._keeps, None
        check(status)
        result = self._result()
        del keeps
        return result

    def __del__(self) -> None:
        if self._handle is not None:
            Handle._abandoned.append(self)


def _reap() -> None:
    """Frees the handles of tensors that nobody waits for and that have been processed."""
    if not Handle._abandoned:
        return
    waiting, Handle._abandoned[:] = list(Handle._abandoned), []
    for one in waiting:
        if one.is_ready():
            lib.ddl_wait(one._handle)
            one._handle = None
        else:
            Handle._abandoned.append(one)


# Looked up once, not at each call.
_OPTIONS = ffi.typeof("ddl_async_options *")
_OPTIONS_SIZE = ffi.sizeof("ddl_async_options")


class Options:
    """What libddl is told of a tensor beside its elements. May be used for several tensors of this shape."""

    def __init__(
        self, shape: Sequence[int] = (), prescale: float = 1.0, postscale: float = 1.0, priority: int = 0,
        group: str | None = None, group_size: int = 0, zeros_if_joined: bool = False, fails_if_joined: bool = False,
    ):
        self.shape = tuple(shape)
        group_name = ffi.new("char[]", group.encode()) if group else NULL
        dimensions = ffi.new("uint64_t[]", self.shape)
        self._keeps = group_name, dimensions
        self._values = ffi.new(_OPTIONS, dict(
            struct_size=_OPTIONS_SIZE, prescale=prescale, postscale=postscale, priority=priority, group=group_name,
            group_size=group_size, shape=dimensions, dimensions=len(self.shape), zeros_if_joined=int(zeros_if_joined),
            fails_if_joined=int(fails_if_joined),
        ))

    def submit(
        self, call: Callable[..., int], name: bytes, *arguments: Any,
        process_set: ProcessSet = world, stream: Any = NULL,
    ) -> Any:
        """The handle of a tensor that one of libddl's functions takes."""
        self._values.process_set, self._values.stream = process_set.number, stream
        _reap()
        handle = ffi.new("ddl_handle **")
        check(call(context(), name, *arguments, self._values, handle))
        return handle[0]


def submit(
    call: Callable[..., int], name: bytes, *arguments: Any,
    process_set: ProcessSet = world, stream: Any = NULL, **options: Any,
) -> Any:
    """The same for one tensor. options: those of Options."""
    return Options(**options).submit(call, name, *arguments, process_set=process_set, stream=stream)


def numbered(call: str, process_set: ProcessSet) -> str:
    """Stands for a name: all ranks of the set give the same if they make the same calls in the same order. A rank that
    has joined has made fewer than the others, so after a join the numbers begin anew."""
    number = next(_numbers.setdefault((call, process_set.number), itertools.count(1)))
    joins = _joins.get(process_set.number)
    return f"{number}" if joins is None else f"{joins}.{number}"


def _shape(array: Any) -> tuple[int, ...]:
    return tuple(getattr(array, "shape", ()) or ())


def _submit_array(
    call: Callable[..., int], kind: str, name: str | None, buffer: Buffer, shape: Sequence[int], *arguments: Any,
    process_set: ProcessSet = world, stream: Any = None, **options: Any,
) -> Any:
    """Submits an array. kind: of calls without a name, which are numbered."""
    whole = (name or f"{kind}.{numbered(kind, process_set)}").encode()
    stream = stream_of(buffer, stream)
    return submit(call, whole, *arguments, process_set=process_set, shape=shape, stream=stream, **options)


def allreduce_async(
    array: Any, name: str | None = None, op: int = SUM, *, out: Any = None, dtype: str | None = None, **options: Any
) -> Handle:
    """Submits a tensor for an allreduce; wait() returns out, or a new array.

    name: the same on every rank; None: numbered, if all ranks submit their tensors in the same order.
    options: process_set, stream, prescale, postscale, priority, group, group_size, zeros_if_joined,
    fails_if_joined.
    """
    send = buffer_of(array, "the array", dtype=dtype)
    result = new_like(array) if out is None else out
    recv = place_for(result, send.count, send, dtype)
    arguments = (send.address, recv.address, send.count, send.dtype, op)
    handle = _submit_array(lib.ddl_allreduce_async, "allreduce", name, send, _shape(array), *arguments, **options)
    return Handle(handle, lambda: result, (send, recv))


def broadcast_async(
    array: Any, name: str | None = None, root: int = 0, *, dtype: str | None = None, **options: Any
) -> Handle:
    """Submits a tensor for a broadcast of root's elements; wait() returns the array."""
    buffer = buffer_of(array, "the array", writable=True, dtype=dtype)
    arguments = (buffer.address, buffer.count, buffer.dtype, root)
    handle = _submit_array(lib.ddl_broadcast_async, "broadcast", name, buffer, _shape(array), *arguments, **options)
    return Handle(handle, lambda: array, buffer)


def allgather_into(
    new: Callable[[int], Any], array: Any, name: str | None, dtype: str | None = None, **options: Any
) -> Handle:
    """allgather_async(), with a result of the caller's making. new: makes it, for a number of bytes."""
    send = buffer_of(array, "the array", dtype=dtype)
    if send.on_gpu:
        raise InvalidArgument("arrays on a GPU have no named allgather here; use allgather(), or ddl.torch")
    memory, counts = ffi.new("void **"), ffi.new("uint64_t[]", members_of(options.get("process_set", world)))
    arguments = (send.address, send.count, memory, counts, send.dtype)
    handle = _submit_array(lib.ddl_allgatherv_async, "allgather", name, send, _shape(array)[1:], *arguments, **options)

    def result() -> Any:
        size = sum(counts) * int(lib.ddl_dtype_size(send.dtype))
        made = new(size)
        if size:
            ffi.memmove(ffi.from_buffer(memoryview(made).cast("B")), memory[0], size)
        check(lib.ddl_free(context(), memory[0]))
        return made

    return Handle(handle, result, send)


def allgather_async(array: Any, name: str | None = None, *, dtype: str | None = None, **options: Any) -> Handle:
    """Submits a tensor; wait() returns those of all ranks, one after the other along the first dimension, which may
    differ from rank to rank. Of arrays on the host."""
    row = _shape(array)[1:]
    row_size = max(math.prod(row) * getattr(array, "itemsize", 1), 1)
    return allgather_into(lambda size: new_like(array, (size // row_size, *row)), array, name, dtype, **options)


def join(process_set: ProcessSet = world) -> int:
    """Says that this rank has no more data, and takes part in the others' named tensors without any, until all ranks
    have joined; their other calls, such as allreduce(), wait. Returns the highest of the ranks that joined last."""
    last = ffi.new("int32_t *")
    check(lib.ddl_join(context(), process_set.number, last))
    _joins[process_set.number] = _joins.get(process_set.number, 0) + 1
    for key in [key for key in _numbers if key[1] == process_set.number]:
        del _numbers[key]
    return int(last[0])
