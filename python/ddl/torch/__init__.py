"""Horovod's names for PyTorch, run by libddl.

    import ddl.torch as hvd

Start the program by ``ddlrun -np 4 python train.py``. docs/guide/from-horovod.md says what is the same and what
differs.
"""
from ddl.torch import elastic
from ddl.torch.compression import Compression
from ddl.torch.functions import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from ddl.torch.grad_scaler import ShardedGradScaler
from ddl.torch.mpi_ops import *
from ddl.torch.optimizer import DistributedOptimizer
from ddl.torch.sharded_optimizer import ShardedOptimizer
from ddl.torch.sync_batch_norm import SyncBatchNorm
