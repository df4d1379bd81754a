"""Collectives for JAX, inside and outside of jax.jit, run by libddl.

    import ddl.jax, jax
    ddl.jax.init()
    step = jax.jit(lambda x: ddl.jax.allreduce(x, ddl.jax.AVERAGE))

Start the program by ``ddlrun -np 4 python train.py``. docs/guide/jax.md says more.
"""
from ddl._context import (
    ADASUM,
    AVERAGE,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    LOGICAL_AND,
    LOGICAL_OR,
    LOGICAL_XOR,
    MAX,
    MIN,
    PRODUCT,
    SUM,
    ProcessSet,
    cross_rank,
    cross_size,
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
    world,
)
from ddl.jax._ops import (
    allgather,
    allreduce,
    alltoall,
    average_gradients,
    barrier,
    broadcast,
    grouped_allreduce,
    reduce_scatter,
)
