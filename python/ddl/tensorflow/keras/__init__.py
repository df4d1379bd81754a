"""Horovod's names for tf.keras, run by libddl: those of ddl.keras, for the Keras that TensorFlow names.

    import ddl.tensorflow.keras as hvd

Start the program by ``ddlrun -np 4 python train.py``. docs/guide/keras.md says more.
"""
from tensorflow import keras

from ddl._basics import *
from ddl.keras._variables import broadcast_variables
from ddl.keras._xla import choose_no_xla
from ddl.keras.loading import load_with
from ddl.keras.optimizer import DistributedOptimizer, PartialDistributedOptimizer
from ddl.keras.values import allgather, allreduce, broadcast, broadcast_global_variables, reducescatter
from ddl.tensorflow.compression import Compression
from ddl.tensorflow.keras import callbacks, elastic

choose_no_xla(keras)


def load_model(filepath, custom_optimizers=None, custom_objects=None, compression=None, legacy_opts=False):
    """The model of a file. Its optimizer, with the state in the file, is made a DistributedOptimizer.

    custom_optimizers: classes of optimizers that are not Keras's. legacy_opts: accepted; the file says it.
    """
    return load_with(keras, filepath, custom_optimizers, custom_objects, compression)
