"""What ranks do together, by the name of Horovod's module."""
from ddl._basics import *
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
