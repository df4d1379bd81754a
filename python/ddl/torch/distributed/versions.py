"""What this version of PyTorch does with classes of Python that are derived from its own. It is tried."""
from __future__ import annotations

import functools
from typing import Any

import torch
import torch.distributed as dist

_c10d = torch._C._distributed_c10d


@functools.lru_cache(None)
def calls_backends() -> bool:
    """Whether C++ calls the methods of a backend that is written in Python. Such versions keep a work of Python alive
    as long as C++ has it. In older ones a group has no backend, and for C++ no name."""
    if not hasattr(_c10d, "Backend"):
        return False
    reached = []

    class Backend(_c10d.Backend):
        def __init__(self) -> None:
            _c10d.Backend.__init__(self, 0, 1)

        def allreduce(self, tensors: Any, opts: Any = None) -> None:
            reached.append(tensors)

    try:
        group, backend = dist.ProcessGroup(dist.HashStore(), 0, 1), Backend()
        custom = dist.ProcessGroup.BackendType.CUSTOM
        group._set_default_backend(custom)
        group._register_backend(torch.device("cpu"), custom, backend)
        group.allreduce([torch.zeros(1)])
    except (AttributeError, RuntimeError, TypeError):
        pass
    return bool(reached)


def for_several_tensors(work: Any) -> Any:
    """A work that C++ may wait for once for each of several tensors. Older versions would have only the C++ part of it
    after the first time, whose wait() never ends."""
    if calls_backends() or not hasattr(_c10d, "_create_work_from_future"):
        return work
    return _c10d._create_work_from_future(work.get_future())
