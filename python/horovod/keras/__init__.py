"""The names of horovod.keras."""
from ddl.keras import *
from horovod._absent import without_elastic
from horovod._compile import accept_experimental_run_tf_function
from horovod.keras import callbacks

accept_experimental_run_tf_function()
__getattr__ = without_elastic(__name__)
