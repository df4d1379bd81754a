"""The names of horovod.torch."""
from ddl.torch import *
from horovod.common.util import check_extension
import horovod.torch.elastic as elastic  # not that of ddl.torch
