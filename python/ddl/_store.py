"""A key-value store of the program, as libddl takes it: through it the members of a new process set find each other."""
from __future__ import annotations

import time
from typing import Any, Protocol, Sequence

from ddl._library import ffi, lib
from ddl.errors import Error, check

_FAILED = -2  # as ddl_store has it
_NOTHING = -1
# Between two looks at the store: a part of the time waited until then. The wait() of PyTorch's stores is not used:
# after its time has passed it writes a warning, and a TCPStore of PyTorch 1.13 gives wrong answers from then on.
_PART = 0.25
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1


class Store(Protocol):
    """What a store must have. A torch.distributed.Store is one, also of PyTorch 1.13, which has no check()."""

    def set(self, key: str, value: bytes) -> object:
        """Stores the value, in place of an earlier one."""

    def get(self, key: str) -> bytes:
        """The value of a key that has one."""

    def check(self, keys: list[str]) -> bool:
        """Whether each key has a value."""


class _Use:
    """A store, while one set is made."""

    def __init__(self, store: Store):
        self.store = store
        self.raised: BaseException | None = None

    def has(self, key: str) -> bool:
        if hasattr(self.store, "check"):
            return self.store.check([key])
        # Stores nothing, and gives the value, or what is expected in its place if there is none.
        return bytes(self.store.compare_set(key, "?", "?")) != b"?"

    def wait(self, key: str, seconds: float) -> bool:
        begin = time.monotonic()
        while not self.has(key):
            waited = time.monotonic() - begin
            if waited >= seconds:
                return False
            time.sleep(min(max(waited * _PART, _SHORTEST_PAUSE), _LONGEST_PAUSE, seconds - waited))
        return True


@ffi.callback("int32_t(void *, const char *, const void *, uint64_t)", error=_FAILED)
def _put(argument: Any, key: Any, value: Any, size: int) -> int:
    use = ffi.from_handle(argument)
    try:
        use.store.set(ffi.string(key).decode(), bytes(ffi.buffer(value, size)))
    except BaseException as error:
        use.raised = use.raised or error
        return _FAILED
    return 0


@ffi.callback("int64_t(void *, const char *, double, void *, uint64_t)", error=_FAILED)
def _get(argument: Any, key: Any, seconds: float, value: Any, capacity: int) -> int:
    use = ffi.from_handle(argument)
    try:
        name = ffi.string(key).decode()
        if not use.wait(name, seconds):
            return _NOTHING
        found = use.store.get(name)
        ffi.memmove(value, found, min(len(found), capacity))
    except BaseException as error:
        use.raised = use.raised or error
        return _FAILED
    return len(found)


def make_set(context: Any, ranks: Sequence[int], name: str, store: Store, timeout_seconds: float) -> int:
    """The number of a new set. What the store has raised is the cause of the error, or is raised if it is no error,
    such as KeyboardInterrupt."""
    use = _Use(store)
    handle = ffi.new_handle(use)
    functions = ffi.new("ddl_store *", [ffi.sizeof("ddl_store"), 0, _put, _get, handle, timeout_seconds])
    made = ffi.new("uint64_t *")
    members = ffi.new("int32_t[]", list(ranks))
    status = lib.ddl_process_set_create_by_members(context, members, len(members), name.encode(), functions, made)
    try:
        check(status)
    except Error as error:
        if isinstance(use.raised, Exception):
            raise error from use.raised
        raise use.raised or error
    return int(made[0])
