"""Horovod's names for TensorFlow, run by libddl.

    import ddl.tensorflow as hvd

Start the program by ``ddlrun -np 4 python train.py``. docs/guide/from-horovod.md says what is the same and what
differs.
"""
try:
    import tensorflow as _tensorflow
except ModuleNotFoundError as _error:
    if _error.name != "tensorflow":
        raise
    raise ModuleNotFoundError(
        "ddl.tensorflow needs TensorFlow 2.12 or newer; install it: pip install tensorflow", name="tensorflow"
    ) from None

from ddl.tensorflow import elastic
from ddl.tensorflow._variables import (
    BroadcastGlobalVariablesHook,
    broadcast_global_variables,
    broadcast_variables,
)
from ddl.tensorflow.compression import Compression
from ddl.tensorflow.functions import allgather_object, broadcast_object, broadcast_object_fn
from ddl.tensorflow.gradient_tape import DistributedGradientTape, PartialDistributedGradientTape
from ddl.tensorflow.mpi_ops import *
from ddl.tensorflow.optimizer import DistributedOptimizer
from ddl.tensorflow.sync_batch_norm import SyncBatchNormalization
from ddl.tensorflow.util import _executing_eagerly
