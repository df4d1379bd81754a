"""Values of all ranks: numbers, lists, arrays and tensors. Results are tensors of what computes for Keras."""
from __future__ import annotations

from typing import Any

import numpy

from ddl._buffers import buffer_of, new_like, stream_of
from ddl._horovod import Average, Sum, global_process_set, named, op_of, root_in, set_of
from ddl._library import ffi, lib
from ddl._tensors import Handle, allgather_async, allreduce_async, broadcast_async, submit
from ddl.keras._kinds import value_of
from ddl.keras.backends import current


def _array(value: Any) -> numpy.ndarray:
    """A copy. Numbers of Python are of 32 bits, as tensors are that Keras makes of them."""
    if isinstance(value, (bool, int, float, list, tuple)):
        array = numpy.array(value)
        return array.astype({"float64": "float32", "int64": "int32"}.get(array.dtype.name, array.dtype))
    return numpy.array(value if isinstance(value, (numpy.ndarray, numpy.generic)) else value_of(value))


def allreduce(
    value: Any, name: str | None = None, average: bool | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, op: Any = None, compression: Any = None,
) -> Any:
    """The ranks' values combined, on every rank."""
    op, backend = op_of(average, op), current()
    small, kept = backend.tensor(_array(value)), None
    if compression is not None:
        small, kept = compression.compress(small)
    array = numpy.atleast_1d(_array(small))
    options = dict(prescale=prescale_factor, postscale=postscale_factor, process_set=set_of(global_process_set))
    whole = named("allreduce", name, global_process_set).decode()
    result = backend.tensor(allreduce_async(array, whole, op.number, **options).wait().reshape(tuple(small.shape)))
    return result if compression is None else compression.decompress(result, kept)


def allgather(value: Any, name: str | None = None) -> Any:
    """The ranks' values, one after the other along the first dimension, which may differ from rank to rank."""
    array = numpy.atleast_1d(_array(value))
    whole = named("allgather", name, global_process_set).decode()
    return current().tensor(allgather_async(array, whole, process_set=set_of(global_process_set)).wait())


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """Root's value, on every rank."""
    array = _array(value)
    whole = named("broadcast", name, global_process_set).decode()
    options = dict(root=root_in(global_process_set, root_rank), process_set=set_of(global_process_set))
    broadcast_async(numpy.atleast_1d(array).reshape(-1), whole, **options).wait()
    return current().tensor(array)


def reducescatter(value: Any, name: str | None = None, op: Any = Average) -> Any:
    """The ranks' values combined, of which each rank gets some rows. The first ranks get more."""
    array, chosen = _array(value), set_of(global_process_set)
    if op not in (Average, Sum):
        raise ValueError(f"a reducescatter is by Average or Sum, not {op}")
    if not array.ndim:
        raise ValueError("a reducescatter needs a value with a first dimension, whose rows the ranks share")
    share, more = divmod(array.shape[0], chosen.size)
    parts = [share + (1 if rank < more else 0) for rank in range(chosen.size)]
    own = new_like(array, (parts[chosen.rank], *array.shape[1:]))
    send, recv = buffer_of(array, "the value"), buffer_of(own, "the result", writable=True)
    row = array[:1].size
    counts = ffi.new("uint64_t[]", [part * row for part in parts])
    whole = named("reducescatter", name, global_process_set)
    arguments = (send.address, recv.address, counts, send.dtype, op.number)
    handle = submit(lib.ddl_reduce_scatter_async, whole, *arguments, process_set=chosen, shape=array.shape,
                    stream=stream_of(send, None))
    return current().tensor(Handle(handle, lambda: own, (send, recv, counts)).wait())


def broadcast_global_variables(root_rank: int) -> None:
    """All variables of a graph of TensorFlow 1 get root's values, in the session of Keras."""
    import tensorflow

    from ddl.tensorflow._variables import broadcast_global_variables as operation_of

    operation = operation_of(root_rank)  # it says what to do instead, if there is no graph
    session_of = getattr(tensorflow.compat.v1.keras.backend, "get_session", None)
    if session_of is None:
        raise RuntimeError(
            "Keras 3 has no session for graphs of TensorFlow 1; run ddl.tensorflow.broadcast_global_variables(root) in "
            "your own"
        )
    session_of().run(operation)
