"""What ranks do together, by the name of Horovod's module."""
from ddl._context import cross_rank, cross_size, is_initialized, local_rank, local_size, rank, size
from ddl._horovod import (
    Adasum,
    Average,
    Max,
    Min,
    ProcessSet,
    Product,
    Sum,
    add_process_set,
    barrier,
    ccl_built,
    cuda_built,
    ddl_built,
    global_process_set,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    join,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    remove_process_set,
    rocm_built,
    shutdown,
    start_timeline,
    stop_timeline,
)
from ddl.errors import Error as HorovodInternalError
from ddl.tensorflow._ops import (
    allgather,
    alltoall,
    broadcast,
    grouped_allgather,
    local_rank_op,
    local_size_op,
    process_set_included_op,
    rank_op,
    size_op,
)
from ddl.tensorflow._reductions import allreduce, grouped_allreduce, grouped_reducescatter, reducescatter
from ddl.tensorflow._variables import broadcast_


def check_num_rank_power_of_2(num_rank: int) -> bool:
    return num_rank > 0 and num_rank & (num_rank - 1) == 0
