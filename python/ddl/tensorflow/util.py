"""By the name of Horovod's module."""
from tensorflow import executing_eagerly as _executing_eagerly
