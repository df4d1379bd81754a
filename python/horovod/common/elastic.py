"""States of training that need no framework, with the arguments of Horovod's."""
from __future__ import annotations

from typing import Any, Callable

from ddl import elastic
from ddl.elastic import run
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt


class State(elastic.State):
    """ddl.elastic.State. bcast_object, get_rank: not used; ddl has its own."""

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int]):
        super().__init__()


class ObjectState(elastic.ObjectState):
    """ddl.elastic.ObjectState. bcast_object, get_rank: not used; ddl has its own."""

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int], **kwargs: Any):
        super().__init__(**kwargs)


def run_fn(func: Callable[..., Any], reset: Callable[[], None]) -> Callable[..., Any]:
    """ddl.elastic.run(). reset: not used; ddl leaves and joins the job itself."""
    return run(func)
