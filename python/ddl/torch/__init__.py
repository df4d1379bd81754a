"""Horovod's names for PyTorch, run by libddl.

    import ddl.torch as hvd

Start the program by ``ddlrun -np 4 python train.py``. docs/guide/from-horovod.md says what is the same and what
differs.
"""
from __future__ import annotations

from ddl._context import cross_rank, cross_size, is_initialized, local_rank, local_size, rank, size
from ddl._horovod import (
    Adasum,
    Average,
    Max,
    Min,
    ProcessSet,
    Product,
    Sum,
    add_process_set,
    allgather_object,
    barrier,
    broadcast_object,
    ccl_built,
    cuda_built,
    ddl_built,
    global_process_set,
    gloo_built,
    gloo_enabled,
    init,
    join,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    poll,
    remove_process_set,
    rocm_built,
    shutdown,
    start_timeline,
    stop_timeline,
    synchronize,
)
from ddl.errors import Error as HorovodInternalError
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
from ddl.torch._functions import broadcast_parameters
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
from ddl.torch._sparse import sparse_allreduce_async
