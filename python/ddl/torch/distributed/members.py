"""The members of a group, as one of them sees them."""
from __future__ import annotations

import threading
import weakref
from typing import Any, Callable

from ddl._context import _at_end
from ddl.torch.distributed.collectives import Collectives
from ddl.torch.distributed.joining import Keys, exchanged_ranks, make_set
from ddl.torch.distributed.messages import Messages
from ddl.torch.distributed.monitored import monitored_barrier
from ddl.torch.distributed.works import BackendError, Calls, Together, Work, seconds_of

_LONGEST_SECONDS = 1800.0  # PyTorch's own limit, where none is given

_alive: weakref.WeakSet[Members] = weakref.WeakSet()


class Members:
    """The members of a group, from the view of one: what the group and its backends have in common."""

    def __init__(self, store: Any, name: str, rank: int, size: int, timeout: Any, ranks: list[int] | None):
        """ranks: of libddl's job; None: the members give them to each other, by the store."""
        self.rank, self.size = rank, size
        self._seconds = seconds_of(timeout) or _LONGEST_SECONDS
        self._keys = Keys(store, rank)
        self.ranks = ranks or exchanged_ranks(self._keys, rank, size, self._seconds)
        self._set = make_set(self._keys, self.ranks, name, self._seconds)
        self.calls = Collectives(self._set)
        self.messages = Messages(self._set)
        self._name = f"the group of {size} ranks"
        self._works = Calls(self._name)
        self._barriers = 0
        self._together = threading.local()
        self._is_closed = False
        _alive.add(self)

    def seconds(self, opts: Any) -> float:
        """The limit of a call with these options; 0: none."""
        return seconds_of(getattr(opts, "timeout", None)) or self._seconds

    def set_timeout(self, timeout: Any) -> None:
        self._seconds = seconds_of(timeout)

    def submit(self, call: Callable[[], None], result: Any, somebody_waits: bool) -> Work:
        return self.noted(self._works.submit(call, result, somebody_waits))

    def message(self, start: Callable[..., Work], *arguments: Any) -> Work:
        if self._is_closed:
            raise BackendError(f"{self._name} was destroyed, and sends and receives no more")
        return self.noted(start(*arguments, self._seconds))

    def noted(self, work: Any) -> Any:
        """As a part of a work, if this thread is between begin_together() and end_together()."""
        works = getattr(self._together, "works", None)
        if works is not None:
            works.append(work)
        return work

    def begin_together(self) -> None:
        self._together.works = []

    def end_together(self) -> Together:
        works, self._together.works = getattr(self._together, "works", None) or [], None
        return Together(works)

    def monitored_barrier(self, timeout: Any, wait_all_ranks: bool) -> None:
        if self._is_closed:
            raise BackendError(f"{self._name} was destroyed")
        self._barriers += 1
        seconds = self._seconds if timeout is None else timeout.total_seconds()
        prefix = f"barrier/{self._barriers}"
        monitored_barrier(self._keys, prefix, self.rank, self.size, seconds, wait_all_ranks)

    def close(self, abandon: bool = False) -> None:
        """Ends the calls (Calls.close()), and leaves the process set."""
        self._works.close(abandon)
        is_closed, self._is_closed = self._is_closed, True
        if not is_closed:
            self._set.free()


def _end() -> None:
    """Before ddl.shutdown(): no thread may be inside a call."""
    for members in list(_alive):
        members.close(abandon=True)
    _alive.clear()


_at_end.append(_end)
