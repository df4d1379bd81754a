from ddl.torch import *
from ddl.torch.optimizer import DistributedOptimizer
from horovod.common.util import split_list
