"""Messages from one rank to another, which neither waits for."""
from __future__ import annotations

from typing import Any

from ddl._buffers import buffer_of, stream_of
from ddl._context import ProcessSet, call_options, context, world
from ddl._library import ffi, lib
from ddl._tensors import Handle, _reap
from ddl.errors import check

ANY_RANK = -1
ANY_TAG = -1


class Message(Handle):
    """A message that is sent or received. wait() returns the array, once."""

    def __init__(self, handle: Any, array: Any, other: Any, keeps: Any):
        super().__init__(handle, lambda: array, (keeps, other))
        self._other = other

    @property
    def source(self) -> int:
        """Of a receive that is complete: the rank of the process set that has sent the message."""
        return int(self._other[0])


def send_async(
    array: Any, to: int, tag: int = 0, *,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, dtype: str | None = None,
) -> Message:
    """Sends the array, which must not be changed until wait() has returned. tag: 0 or above."""
    buffer = buffer_of(array, "the array", dtype=dtype)
    _reap()
    handle = ffi.new("ddl_handle **")
    options = call_options(process_set, timeout_seconds, stream_of(buffer, None))
    check(lib.ddl_send_async(context(), buffer.address, buffer.count, buffer.dtype, to, tag, options, handle))
    return Message(handle[0], array, ffi.new("int32_t *", to), buffer)


def recv_async(
    array: Any, source: int = ANY_RANK, tag: int = ANY_TAG, *,
    process_set: ProcessSet = world, timeout_seconds: float = 0.0, dtype: str | None = None,
) -> Message:
    """Receives into the array what a rank sends with send_async(): one rank or any, with one tag or any."""
    buffer = buffer_of(array, "the array", writable=True, dtype=dtype)
    _reap()
    handle, sender = ffi.new("ddl_handle **"), ffi.new("int32_t *")
    options = call_options(process_set, timeout_seconds, stream_of(buffer, None))
    arguments = (buffer.address, buffer.count, buffer.dtype, source, tag, options, sender, handle)
    check(lib.ddl_recv_async(context(), *arguments))
    return Message(handle[0], array, sender, buffer)
