"""Objects and variables that ranks get from each other, by the name of Horovod's module."""
from __future__ import annotations

from typing import Any

from ddl import _horovod
from ddl._horovod import global_process_set
from ddl.tensorflow._variables import broadcast_variables


def broadcast_object(obj: Any, root_rank=0, session=None, name=None, process_set=global_process_set) -> Any:
    """Root's object, on every rank. session: not needed."""
    return _horovod.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(root_rank=0, session=None, name=None, process_set=global_process_set):
    """A function that gives root's object for each object of its own."""
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(obj: Any, session=None, name=None, process_set=global_process_set) -> list[Any]:
    """Every rank's object, by rank. session: not needed."""
    return _horovod.allgather_object(obj, name, process_set)
