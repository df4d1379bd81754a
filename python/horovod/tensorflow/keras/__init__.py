"""The names of horovod.tensorflow.keras."""
from ddl.tensorflow.keras import *
from horovod._absent import without_elastic
from horovod._compile import accept_experimental_run_tf_function
from horovod.common.util import is_version_greater_equal_than
from horovod.tensorflow.keras import callbacks

accept_experimental_run_tf_function()
__getattr__ = without_elastic(__name__)
