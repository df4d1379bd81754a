from ddl.tensorflow.keras.callbacks import *
from horovod.common.util import is_version_greater_equal_than
