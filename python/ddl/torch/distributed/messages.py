"""Messages between two ranks of a group, with tags."""
from __future__ import annotations

import threading
from typing import Any, Callable

import torch

from ddl._context import ProcessSet, call_options, context
from ddl._library import ffi, lib
from ddl._messages import ANY_RANK
from ddl.errors import check
from ddl.torch._tensors import address
from ddl.torch.distributed.collectives import movable
from ddl.torch.distributed.works import Work


class _Message:
    """A message that goes on: it is waited for by the thread that wants it to be done."""

    def __init__(self, handle: Any):
        self._handle = handle
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def make_until(self, work: Work) -> bool:
        with self._lock:
            if not work.is_done:
                work.make()
        return True

    def look(self, work: Work) -> None:
        """Ends the work if the message is complete."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            done = ffi.new("int32_t *")
            if not work.is_done and lib.ddl_test(self._handle, done) == lib.DDL_OK and done[0]:
                work.make()
        finally:
            self._lock.release()

    def wake(self, work: Work) -> None:
        """Lets another thread wait."""
        if self._thread is None:
            self._thread = threading.Thread(target=self.make_until, args=(work,), name="ddl-message", daemon=True)
            self._thread.start()


class Messages:
    """Of a process set. libddl's messages are of CPU memory, so those of a GPU go through the memory of the host."""

    def __init__(self, process_set: ProcessSet):
        self._process_set = process_set

    def _started(self, call: Callable[..., int], tensor: torch.Tensor, seconds: float, *arguments: Any) -> Any:
        options = call_options(self._process_set, seconds)
        handle = ffi.new("ddl_handle **")
        more = arguments[2:]
        check(call(context(), address(tensor), *movable(tensor), *arguments[:2], options, *more, handle))
        return handle[0]

    def send(self, tensor: torch.Tensor, peer: int, tag: int, seconds: float) -> Work:
        whole = tensor.cpu().contiguous()
        handle = self._started(lib.ddl_send_async, whole, seconds, peer, tag)

        def end(_: Any = whole) -> None:  # which keeps it
            check(lib.ddl_wait(handle))

        return Work(_Message(handle), end, [tensor])

    def recv(self, tensor: torch.Tensor, peer: int, tag: int, seconds: float) -> Work:
        is_whole = tensor.is_contiguous() and not tensor.is_cuda
        whole = tensor if is_whole else torch.empty(tensor.shape, dtype=tensor.dtype)
        source = ffi.new("int32_t *", -1)
        handle = self._started(lib.ddl_recv_async, whole, seconds, peer, tag, source)

        def end() -> None:
            check(lib.ddl_wait(handle))
            work.source = source[0]
            if not is_whole:
                tensor.copy_(whole)

        work = Work(_Message(handle), end, [tensor])
        return work

    def recv_anysource(self, tensor: torch.Tensor, tag: int, seconds: float) -> Work:
        return self.recv(tensor, ANY_RANK, tag, seconds)
