"""Named tensors: handed over from any thread, in any order, and carried out while the program computes."""
from __future__ import annotations

import itertools
from typing import Any, Callable, Iterator, Sequence

from ddl._buffers import Buffer, buffer_of
from ddl._context import SUM, ProcessSet, _at_end, _like, _stream, context, members_of, place_for, world
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
    """A tensor that was handed over. Its arrays must not be changed until wait() has returned, once."""

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
        """Waits until it has been carried out, and returns the result. Raises what went wrong with this tensor."""
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
    """Frees the handles of tensors that nobody waits for and that have been carried out."""
    waiting, Handle._abandoned[:] = list(Handle._abandoned), []
    for one in waiting:
        if one.is_ready():
            lib.ddl_wait(one._handle)
            one._handle = None
        else:
            Handle._abandoned.append(one)


class AsyncOptions:
    """A ddl_async_options, and what it points to."""

    def __init__(
        self,
        process_set: ProcessSet,
        shape: Sequence[int],
        stream: Any = NULL,
        *,
        prescale: float = 1.0,
        postscale: float = 1.0,
        priority: int = 0,
        group: str | None = None,
        group_size: int = 0,
        zeros_if_joined: bool = False,
    ):
        self._group = ffi.new("char[]", group.encode()) if group else NULL
        self._shape = ffi.new("uint64_t[]", list(shape))
        self.pointer = ffi.new(
            "ddl_async_options *",
            [
                ffi.sizeof("ddl_async_options"),
                0,
                process_set.number,
                stream,
                prescale,
                postscale,
                priority,
                group_size,
                self._group,
                NULL,
                NULL,
                self._shape,
                len(shape),
                int(zeros_if_joined),
            ],
        )


def _options(
    buffer: Buffer,
    array: Any,
    *,
    process_set: ProcessSet = world,
    stream: Any = None,
    is_gathered: bool = False,
    **more: Any,
) -> AsyncOptions:
    shape = tuple(getattr(array, "shape", ()) or ())
    return AsyncOptions(process_set, shape[1:] if is_gathered else shape, _stream(buffer, stream), **more)


def numbered(call: str, process_set: ProcessSet) -> str:
    """Stands for a name: all ranks of the set give the same if they make the same calls in the same order. A rank that
    has joined has made fewer than the others, so after a join the numbers begin anew."""
    number = next(_numbers.setdefault((call, process_set.number), itertools.count(1)))
    joins = _joins.get(process_set.number)
    return f"{number}" if joins is None else f"{joins}.{number}"


def _named(name: str | None, call: str, process_set: ProcessSet) -> bytes:
    return (name or f"{call}.{numbered(call, process_set)}").encode()


def hand_over(call: Callable[..., int], *arguments: Any) -> Any:
    """The handle of a tensor that one of libddl's functions takes."""
    _reap()
    handle = ffi.new("ddl_handle **")
    check(call(context(), *arguments, handle))
    return handle[0]


def allreduce_async(
    array: Any, name: str | None = None, op: int = SUM, *, out: Any = None, dtype: str | None = None, **options: Any
) -> Handle:
    """Hands over a tensor for an allreduce; wait() returns out, or a new array.

    name: the same on every rank; None: numbered, if all ranks hand over their tensors in the same order.
    options: process_set, stream, prescale, postscale, priority, group, group_size, zeros_if_joined.
    """
    send = buffer_of(array, "the array", dtype=dtype)
    result = _like(array) if out is None else out
    recv = place_for(result, send.count, send, dtype)
    all_options = _options(send, array, **options)
    handle = hand_over(
        lib.ddl_allreduce_async,
        _named(name, "allreduce", options.get("process_set", world)),
        send.address,
        recv.address,
        send.count,
        send.dtype,
        op,
        all_options.pointer,
    )
    return Handle(handle, lambda: result, (send, recv))


def broadcast_async(
    array: Any, name: str | None = None, root: int = 0, *, dtype: str | None = None, **options: Any
) -> Handle:
    """Hands over a tensor for a broadcast of root's elements; wait() returns the array."""
    buffer = buffer_of(array, "the array", writable=True, dtype=dtype)
    all_options = _options(buffer, array, **options)
    handle = hand_over(
        lib.ddl_broadcast_async,
        _named(name, "broadcast", options.get("process_set", world)),
        buffer.address,
        buffer.count,
        buffer.dtype,
        root,
        all_options.pointer,
    )
    return Handle(handle, lambda: array, buffer)


def _taken(memory: Any, bytes_: int, like: Any, row: int) -> Any:
    """What libddl has allocated, as a new array of rows; frees it."""
    shape = tuple(getattr(like, "shape", ()) or ())
    itemsize = getattr(like, "itemsize", 1)
    array = _like(like, (bytes_ // max(row * itemsize, 1), *shape[1:]))
    if bytes_:
        ffi.memmove(ffi.from_buffer(memoryview(array).cast("B")), memory[0], bytes_)
    check(lib.ddl_free(context(), memory[0]))
    return array


def _row_of(array: Any) -> int:
    """Elements of one index of the first dimension."""
    count = 1
    for length in tuple(getattr(array, "shape", ()) or ())[1:]:
        count *= length
    return count


def allgather_async(array: Any, name: str | None = None, *, dtype: str | None = None, **options: Any) -> Handle:
    """Hands over a tensor; wait() returns those of all ranks, one after the other along the first dimension, which may
    differ from rank to rank. Of arrays on the host."""
    send = buffer_of(array, "the array", dtype=dtype)
    if send.on_gpu:
        raise InvalidArgument("arrays on a GPU have no named allgather here; use allgather(), or ddl.torch")
    memory, counts = ffi.new("void **"), ffi.new("uint64_t[]", members_of(options.get("process_set", world)))
    all_options = _options(send, array, is_gathered=True, **options)
    handle = hand_over(
        lib.ddl_allgatherv_async,
        _named(name, "allgather", options.get("process_set", world)),
        send.address,
        send.count,
        memory,
        counts,
        send.dtype,
        all_options.pointer,
    )
    size = int(lib.ddl_dtype_size(send.dtype))
    return Handle(handle, lambda: _taken(memory, sum(counts) * size, array, _row_of(array)), send)


def join(process_set: ProcessSet = world) -> int:
    """Says that this rank has no more data, and takes part in the others' named tensors without any, until all ranks
    have joined; their other calls, such as allreduce(), wait. Returns the highest of the ranks that joined last."""
    last = ffi.new("int32_t *")
    check(lib.ddl_join(context(), process_set.number, last))
    _joins[process_set.number] = _joins.get(process_set.number, 0) + 1
    for key in [key for key in _numbers if key[1] == process_set.number]:
        del _numbers[key]
    return int(last[0])
