"""Process sets with Horovod's names."""
from __future__ import annotations

from typing import Any, Sequence

import ddl


class ProcessSet:
    """Ranks of the job, by their numbers. It can be used after add_process_set()."""

    def __init__(self, ranks: Any):
        if hasattr(ranks, "Get_group"):  # a communicator of mpi4py
            from mpi4py import MPI

            group, everyone = ranks.Get_group(), MPI.COMM_WORLD.Get_group()
            ranks = MPI.Group.Translate_ranks(group, range(group.size), everyone)
        self.ranks = None if ranks is None else sorted(int(rank) for rank in ranks)
        self._set: ddl.ProcessSet | None = None

    @property
    def process_set_id(self) -> int | None:
        """0 is the job. None: it is not registered, or this rank is not in it."""
        return self._set.number if self._set is not None and self.included() else None

    def included(self) -> bool | None:
        """Whether this rank is in it; None: it is not registered."""
        return None if self._set is None else ddl.rank() in self.ranks

    def size(self) -> int | None:
        return None if self._set is None else len(self.ranks)

    def rank(self) -> int | None:
        """This rank's number in it; None: it is not in it."""
        return self.ranks.index(ddl.rank()) if self.included() else None

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet(None)


def begin(process_sets: Any) -> None:
    """After ddl.init()."""
    global_process_set.ranks = list(range(ddl.size()))
    global_process_set._set = ddl.world
    if process_sets != "dynamic":
        for one in process_sets or ():
            add_process_set(one)


_added: list[ProcessSet] = []


def end() -> None:
    """Before ddl.shutdown(), which frees them."""
    for one in (*_added, global_process_set):
        one._set = None
    _added.clear()


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Registers a set. Collective over the job, with the same ranks everywhere."""
    one = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    if one._set is not None or any(one.ranks == other.ranks for other in (*_added, global_process_set)):
        raise ValueError(f"a process set of the ranks {one.ranks} has been added already")
    one._set = ddl.ProcessSet.of(one.ranks)
    _added.append(one)
    return one


def remove_process_set(process_set: ProcessSet) -> bool:
    """Leaves a set, which may be added again. False: it is not registered, or the global one."""
    if process_set not in _added:
        return False
    if process_set.included():
        process_set._set.free()
    process_set._set = None
    _added.remove(process_set)
    return True


def set_of(process_set: ProcessSet) -> ddl.ProcessSet:
    if process_set._set is None:
        ddl._context.context()  # says that init() is missing, if it is
        raise ValueError(f"{process_set} has not been added; call add_process_set() first")
    if not process_set.included():
        raise ValueError(f"rank {ddl.rank()} is not in {process_set}")
    return process_set._set
