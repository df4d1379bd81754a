"""Collectives of libddl for NumPy arrays, for anything with the buffer protocol, and for arrays on GPUs.

    import ddl, numpy
    ddl.init()
    mean = ddl.allreduce(numpy.ones(3) * ddl.rank(), ddl.AVERAGE)

Start it with ``ddlrun -np 4 python program.py``. ``ddl.torch`` has Horovod's names for PyTorch.
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
    abort,
    allgather,
    allreduce,
    alltoall,
    backend_name,
    barrier,
    broadcast,
    cross_rank,
    cross_size,
    gather,
    has_feature,
    init,
    is_initialized,
    local_rank,
    local_size,
    mark,
    rank,
    recv,
    reduce,
    reduce_scatter,
    scan,
    scatter,
    send,
    shutdown,
    size,
    version,
    world,
)
from ddl._messages import ANY_RANK, ANY_TAG, Message, recv_async, send_async
from ddl._objects import allgather_object, broadcast_object
from ddl._run import RunError, run
from ddl._tensors import Handle, allgather_async, allreduce_async, broadcast_async, join
from ddl.errors import Aborted, Error, Interrupted, InvalidArgument, Mismatch, PeerLost, Timeout

__version__ = "0.2.0"
