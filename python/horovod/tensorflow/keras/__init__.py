"""The names of horovod.tensorflow.keras."""
from tensorflow import keras as _keras

from ddl.tensorflow.keras import *
from horovod._compile import accept_experimental_run_tf_function
from horovod.common.util import is_version_greater_equal_than
from horovod.tensorflow.keras import callbacks, elastic

accept_experimental_run_tf_function(_keras)
