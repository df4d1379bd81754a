"""Horovod's names for PyTorch, carried out by libddl.

    import ddl.torch as hvd

Start the program by ``ddlrun -np 4 python train.py``. docs/guide/from-horovod.md says what is the same and what
differs.
"""
from __future__ import annotations

import ctypes
from typing import Any

import ddl
from ddl import cross_rank, cross_size, is_initialized, local_rank, local_size, rank, size
from ddl._context import _at_end
from ddl.errors import Error as HorovodInternalError
from ddl.torch import _sets
from ddl.torch._allreduce import (
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
)
from ddl.torch._batch_norm import SyncBatchNorm
from ddl.torch._compression import Compression
from ddl.torch._functions import allgather_object, barrier, broadcast_object, broadcast_parameters, join
from ddl.torch._handles import Adasum, Average, Max, Min, Product, Sum, poll, synchronize
from ddl.torch._moves import (
    allgather,
    allgather_async,
    alltoall,
    alltoall_async,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather,
    grouped_allgather_async,
)
from ddl.torch._optimizer import DistributedOptimizer
from ddl.torch._optimizer_state import broadcast_optimizer_state
from ddl.torch._reducescatter import (
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
)
from ddl.torch._sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from ddl.torch._sparse import sparse_allreduce_async


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Joins the job. comm: a list of ranks, or a communicator of mpi4py, of which only all ranks are possible.
    process_sets: sets that are added at once."""
    was = ddl.is_initialized()
    ddl.init()
    if was and global_process_set._set is not None:
        return
    _sets.begin(process_sets)
    if _sets.end not in _at_end:
        _at_end.append(_sets.end)
    if comm is not None and ProcessSet(comm).ranks not in ([], global_process_set.ranks):
        raise ValueError("init() takes all ranks of the job; make a process set of some of them")


def shutdown() -> None:
    """Leaves the job. Called at the end of the program, too."""
    ddl.shutdown()


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """All ranks record a timeline, which rank 0 writes. Collective, unlike Horovod's."""
    ddl._context.check(
        ddl._context.lib.ddl_timeline_start(ddl._context.context(), file_path.encode(), 0)
    )


def stop_timeline() -> None:
    ddl._context.check(ddl._context.lib.ddl_timeline_stop(ddl._context.context()))


def mpi_built() -> bool:
    return ddl.has_feature("mpi")


def mpi_enabled() -> bool:
    return ddl.has_feature("mpi-enabled")


def mpi_threads_supported() -> bool:
    return ddl.has_feature("mpi-threads")


def nccl_built() -> int:
    """The version of NCCL or RCCL, such as 21805 of 2.18.5; 0: neither can be loaded."""
    version = ctypes.c_int(0)
    for file in ("libnccl.so.2", "librccl.so.1") if ddl.has_feature("nccl") else ():
        try:
            ctypes.CDLL(file).ncclGetVersion(ctypes.byref(version))
        except OSError:
            continue
        break
    return version.value


def cuda_built() -> bool:
    return ddl.has_feature("cuda")


def rocm_built() -> bool:
    return ddl.has_feature("rocm")


def gloo_built() -> bool:
    """libddl connects ranks itself, as Horovod's Gloo does."""
    return True


def gloo_enabled() -> bool:
    return not mpi_enabled()


def ddl_built() -> bool:
    """Whether IBM's DDL was there, which Horovod means by this name."""
    return False


def ccl_built() -> bool:
    return False
