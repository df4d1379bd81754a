"""The names of horovod.tensorflow."""
from ddl.tensorflow import *
from horovod._absent import without_elastic
from horovod.common.util import (
    check_extension,
    gpu_available,
    handle_average_backwards_compatibility,
    split_list,
)
from horovod.tensorflow.util import _executing_eagerly, refs_to_vars, vars_to_refs

__getattr__ = without_elastic(__name__)
