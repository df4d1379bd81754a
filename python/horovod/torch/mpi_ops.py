from ddl.torch.compression import Compression
from ddl.torch.mpi_ops import *
from horovod.common.util import (
    check_installed_version,
    get_average_backwards_compatibility_fun,
    gpu_available,
    handle_average_backwards_compatibility,
    num_rank_is_power_2,
)
