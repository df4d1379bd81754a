"""What went wrong in a call of libddl. The text is libddl's own sentence, which names rank and host.

While a call waits, Python's handlers of signals do not run by themselves. So libddl asks, and here they run: what a
handler raises, such as the KeyboardInterrupt of ^C, ends the wait and is raised in place of libddl's error.
"""
from __future__ import annotations

import atexit
import ctypes
import threading
import time

from ddl._library import NULL, ffi, lib

# ^C reaches the ranks one after the other. The first ones may end, and the error of that reaches a rank before its own
# signal: the first such error is raised this much later.
_GRACE_SECONDS = 0.25
_delayed = {lib.DDL_ERROR_PEER_LOST, lib.DDL_ERROR_ABORTED, lib.DDL_ERROR_INTERRUPTED}  # empty after the first one


class Error(RuntimeError):
    """A call of libddl failed. ``status``: its name, such as ``"mismatch"``; ``"program"``: the program raised it."""

    status = "program"

    def __init__(self, message: str = "", status: str | None = None):
        super().__init__(message)
        if status is not None:
            self.status = status


class InvalidArgument(Error, ValueError):
    """An argument is not valid, on this rank."""

    status = "invalid argument"


class Mismatch(Error):
    """Ranks made different calls, and the call did nothing."""

    status = "mismatch"


class Timeout(Error, TimeoutError):
    """A rank did not call in time."""

    status = "timeout"


class PeerLost(Error):
    """Another rank died, or left while this one waited for it."""

    status = "peer lost"


class Aborted(Error):
    """The job was aborted before, or this process was forked from a rank."""

    status = "aborted"


class Interrupted(Error):
    """Another rank was interrupted, as by ^C, while this one waited for it."""

    status = "interrupted"


_BY_STATUS = {one.status: one for one in (InvalidArgument, Mismatch, Timeout, PeerLost, Aborted, Interrupted)}


class _Raised(threading.local):
    """What a handler has raised while a call of this thread waited."""

    error: BaseException | None = None


_raised = _Raised()


def _keep(_kind: object, error: BaseException, _traceback: object) -> None:
    _raised.error = error


@ffi.callback("int32_t(void *)", error=1, onerror=_keep)
def _run_handlers(_argument: object) -> int:
    # Runs handlers on the main thread, and does nothing on others. What they raise ends the wait.
    ctypes.pythonapi.PyErr_CheckSignals()
    return 0


lib.ddl_set_interrupt_check(_run_handlers, NULL)
# libddl also waits for the launcher when Python has ended. Registered before shutdown() is, and so called after it.
atexit.register(lib.ddl_set_interrupt_check, NULL, NULL)


def is_loss(error: Error) -> bool:
    """Whether ranks of an elastic job go on after it: one is lost, or the program itself has raised a plain Error,
    which Horovod calls HorovodInternalError."""
    return isinstance(error, (PeerLost, Timeout, Aborted)) or (type(error) is Error and error.status == Error.status)


def raise_losses_at_once() -> None:
    """From now on the first error is not raised later: ranks that go on without a lost one do not wait."""
    _delayed.difference_update((lib.DDL_ERROR_PEER_LOST, lib.DDL_ERROR_ABORTED))


def error_of(status: int, message: str) -> Error:
    name = ffi.string(lib.ddl_status_name(status)).decode()
    error = _BY_STATUS.get(name)
    return error(message) if error else Error(message, name)


def check(status: int) -> None:
    """Raises what a handler of signals has raised during the call, or the error of a status other than DDL_OK."""
    raised, _raised.error = _raised.error, None
    if raised is not None:
        raise raised
    if status == lib.DDL_OK:
        return
    message = ffi.string(lib.ddl_last_error()).decode("utf-8", "replace")
    if status in _delayed:
        _delayed.clear()
        time.sleep(_GRACE_SECONDS)
    raise error_of(status, message)
