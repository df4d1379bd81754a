"""The names of horovod.tensorflow."""
from ddl.tensorflow import *
from horovod.common.util import (
    check_extension,
    gpu_available,
    handle_average_backwards_compatibility,
    split_list,
)
import horovod.tensorflow.elastic as elastic  # not that of ddl.tensorflow
from horovod.tensorflow.util import _executing_eagerly, refs_to_vars, vars_to_refs
