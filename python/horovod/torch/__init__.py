"""The names of horovod.torch."""
from ddl.torch import *
from horovod._absent import without_elastic
from horovod.common.util import check_extension

__getattr__ = without_elastic(__name__)
