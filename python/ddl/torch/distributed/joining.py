"""How the members of a group find each other: by the key-value store that PyTorch gives."""
from __future__ import annotations

import hashlib
import time
from datetime import timedelta
from typing import Any, Sequence

import torch.distributed as dist

import ddl
from ddl.torch.distributed.works import BackendError

# Older versions have no check(). There a TCPStore answers wrongly after a wait() whose time has passed; newer ones
# write warnings about each such wait. So the store is asked again and again.
_HAS_CHECK = hasattr(dist.PrefixStore, "check")
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.001, 0.05
_NOTHING = "?"


class Keys:
    """A store, under a prefix that only the ranks of one group have."""

    def __init__(self, store: Any, rank: int):
        # A program may give the same store twice.
        use = store.add(f"ddl/joined/{rank}", 1)
        self.store = dist.PrefixStore(f"ddl/{use}", store)

    def set(self, key: str, value: bytes) -> None:
        self.store.set(key, value)

    def get(self, key: str) -> bytes:
        return self.store.get(key)

    def check(self, keys: Sequence[str]) -> bool:
        if _HAS_CHECK:
            return self.store.check(list(keys))
        # Of a key without a value, the answer is what it is compared with.
        return all(self.store.compare_set(key, _NOTHING, _NOTHING) != _NOTHING.encode() for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta) -> None:
        deadline = time.monotonic() + timeout.total_seconds()
        pause = _FIRST_PAUSE_SECONDS
        while not self.check(keys):
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{', '.join(keys)}: no value within {timeout}")
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def missing(self, keys: Sequence[str], seconds: float) -> list[str]:
        """Waits for the keys, and returns those that have not come in time."""
        try:
            self.wait(keys, timedelta(seconds=seconds))
        except TimeoutError:
            return [key for key in keys if not self.check([key])]
        return []


def check_place(rank: int, size: int) -> None:
    """That libddl's job is that of PyTorch's default group."""
    if size > ddl.size() or (size == ddl.size() and rank != ddl.rank()):
        raise ValueError(
            f"RANK and WORLD_SIZE say that this is rank {rank} of {size}, and libddl that it is rank {ddl.rank()} "
            f"of {ddl.size()}: start the program by ddlrun, and leave these variables as it sets them"
        )


def meet(keys: Keys, rank: int, size: int, seconds: float, value: bytes) -> list[str]:
    """Gives the other members of a group a value, and waits for theirs, whose keys are returned."""
    keys.set(f"rank/{rank}", value)
    wanted = [f"rank/{one}" for one in range(size)]
    missing = keys.missing(wanted, seconds)
    if missing:
        absent = ", ".join(key.split("/")[1] for key in missing)
        raise BackendError(f"the group of {size} ranks was not made: its rank {absent} did not come within "
                           f"{seconds:g} s")
    return wanted


def exchanged_ranks(keys: Keys, rank: int, size: int, seconds: float) -> list[int]:
    """The ranks in libddl's job of a group's members, which they give each other. Of a group whose members PyTorch does
    not name by them."""
    return [int(keys.get(key)) for key in meet(keys, rank, size, seconds, str(ddl.rank()).encode())]


def make_set(keys: Keys, ranks: list[int], name: str, seconds: float) -> ddl.ProcessSet:
    """A process set of these ranks of libddl's job. Collective over them. name: that of the group, which PyTorch may
    give again to other ranks when it has been destroyed."""
    digest = hashlib.sha256(",".join(map(str, ranks)).encode()).hexdigest()[:16]
    return ddl.ProcessSet.by_members(ranks, f"torch.{name}.{digest}", keys, seconds)
