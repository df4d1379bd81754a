"""What went wrong in a call of libddl. The text is libddl's own sentence, which names rank and host."""
from __future__ import annotations

from ddl._library import ffi, lib


class Error(RuntimeError):
    """A call of libddl failed. ``status``: its name, such as ``"mismatch"``."""

    status = "internal"

    def __init__(self, message: str, status: str | None = None):
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


_BY_STATUS = {one.status: one for one in (InvalidArgument, Mismatch, Timeout, PeerLost, Aborted)}


def check(status: int) -> None:
    """Raises the error of a status other than DDL_OK."""
    if status == lib.DDL_OK:
        return
    name = ffi.string(lib.ddl_status_name(status)).decode()
    message = ffi.string(lib.ddl_last_error()).decode("utf-8", "replace")
    error = _BY_STATUS.get(name)
    raise error(message) if error else Error(message, name)
