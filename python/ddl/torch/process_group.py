"""A backend of torch.distributed, so that unchanged programs of PyTorch run over libddl.

    torch.distributed.init_process_group("ddl")

Where the package is installed by pip, PyTorch 2.5 and later find the backend by this name. Otherwise ``import
ddl.torch.process_group`` registers it. docs/guide/pytorch.md says what it can do.
"""
from __future__ import annotations

import ddl
import ddl_torch_backend
from ddl._context import _at_end
from ddl._library import lib
from ddl._tensors import submit
from ddl.errors import check
from ddl.torch._tensors import TYPES, address, stream_of
from ddl.torch.distributed.group import ProcessGroup
from ddl.torch.distributed.works import Calls

__all__ = ["ProcessGroup", "average_by_ddl"]

ddl_torch_backend.register()

# For DistributedDataParallel over any backend.


class _Hook:
    """Calls of the hook, on whatever thread makes the backward pass."""

    def __init__(self) -> None:
        self.number = 0
        self.calls = Calls("ddl.torch.process_group.average_by_ddl")
        _at_end.append(self.end)

    def end(self) -> None:
        global _hook
        self.calls.close(abandon=True)
        _at_end.remove(self.end)
        _hook = None


_hook: _Hook | None = None


def average_by_ddl(state, bucket):
    """A communication hook: gradients are averaged by libddl, whatever the model's process group is.

    model.register_comm_hook(None, ddl.torch.process_group.average_by_ddl)
    """
    # PyTorch looks at the parameters' names, and refuses annotations that are texts.
    global _hook
    ddl.init()
    if _hook is None:
        _hook = _Hook()
    _hook.number += 1
    tensor = bucket.buffer()
    name, stream = f"bucket.{_hook.number}".encode(), stream_of(tensor)
    arguments = (address(tensor), address(tensor), tensor.numel(), TYPES[tensor.dtype], lib.DDL_AVERAGE)
    handle = submit(lib.ddl_allreduce_async, name, *arguments, shape=tensor.shape, stream=stream)
    work = _hook.calls.submit(lambda: check(lib.ddl_wait(handle)), tensor, somebody_waits=False)
    return work.get_future()
