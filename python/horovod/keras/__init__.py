"""The names of horovod.keras."""
import keras as _keras

from ddl.keras import *
from horovod._compile import accept_experimental_run_tf_function
from horovod.keras import callbacks, elastic

accept_experimental_run_tf_function(_keras)
