"""Horovod's names for Keras, 2 and 3, run by libddl. Keras 3 may compute with TensorFlow, JAX or PyTorch.

    import ddl.keras as hvd

Start the program by ``ddlrun -np 4 python train.py``. docs/guide/keras.md says more.
"""
try:
    import keras
except ModuleNotFoundError as error:
    if error.name != "keras":
        raise
    raise ModuleNotFoundError(
        "Keras is not installed: pip install keras, and what computes for it: tensorflow, jax or torch", name="keras"
    ) from None

from ddl._basics import *
from ddl.keras import callbacks, elastic
from ddl.keras._variables import broadcast_variables
from ddl.keras._xla import choose_no_xla
from ddl.keras.backends import current
from ddl.keras.loading import load_with
from ddl.keras.optimizer import DistributedOptimizer, PartialDistributedOptimizer
from ddl.keras.values import allgather, allreduce, broadcast, broadcast_global_variables, reducescatter

Compression = current().Compression
choose_no_xla(keras)


def load_model(filepath, custom_optimizers=None, custom_objects=None, compression=None, legacy_opts=False):
    """The model of a file. Its optimizer, with the state in the file, is made a DistributedOptimizer.

    custom_optimizers: classes of optimizers that are not Keras's. legacy_opts: accepted; the file says it.
    """
    return load_with(keras, filepath, custom_optimizers, custom_objects, compression)
