from ddl.tensorflow.mpi_ops import *
from horovod.common.util import (
    check_installed_version,
    get_average_backwards_compatibility_fun,
    get_ext_suffix,
    gpu_available,
    handle_average_backwards_compatibility,
    num_rank_is_power_2,
)
