"""The calls of libddl that a program of TensorFlow makes, without gradients, as operations of libddl's module.

Each takes the name of a tensor or None, whether it stands for itself, without TensorFlow's scopes, and a ProcessSet of
ddl. _fallback.py has the same functions.
"""
from __future__ import annotations

import functools
import re
import struct
from typing import Any, Sequence

import tensorflow as tf

from ddl import _horovod
from ddl._context import ProcessSet
from ddl.tensorflow._module import operations
from ddl.tensorflow._xla import refuse_xla


@functools.lru_cache(maxsize=1024)
def _given(name: str) -> tf.Tensor:
    """A name as an input. TensorFlow keeps a kernel for each value of an attribute, for ever."""
    with tf.device("CPU:0"):
        return tf.constant(list(name.encode()), tf.uint8)


def _named(call: str, name: str | None, ignore_name_scope: bool = False) -> dict[str, Any]:
    """How an operation is called, and its tensor. Eager operations of a thread run one after the other, so those
    without a name may all have one; in a graph the node's name is the tensor's."""
    if tf.executing_eagerly():
        if name:
            return {"given_name": [_given(f"{call}.{name}")]}
        return {"given_name": [], "tensor_name": call}
    refuse_xla(call, name)
    node = re.sub("^[^A-Za-z0-9]|[^A-Za-z0-9_]", "_", name) if name else call
    node = f"{call}{node}" if node.startswith("_") else node
    own = f"{call}.{node}" if ignore_name_scope and name else ""
    return {"given_name": [], "name": node, "tensor_name": own}


def _unordered(results: Any) -> Any:
    """In a function TensorFlow runs stateful operations in the order of the program, each when the one before it has
    ended. These may go in any order, and at once."""
    if not tf.executing_eagerly():
        graph = tf.compat.v1.get_default_graph()
        manager = getattr(graph, "experimental_acd_manager", None)
        if manager is not None:
            manager.run_independently(tf.nest.flatten(results)[0].op)
    return results


def _move(process_set: ProcessSet) -> dict[str, int]:
    """Of all calls but an allreduce."""
    return {"process_set": process_set.number, "fails_if_joined": int(_horovod.acts_as_horovod)}


def _bits(value: float) -> int:
    return struct.unpack("q", struct.pack("d", value))[0]


def _reduction(op: int, prescale: float, postscale: float, process_set: ProcessSet) -> dict[str, int]:
    scales = {"prescale_bits": _bits(prescale), "postscale_bits": _bits(postscale)}
    return {"reduce_op": op, "process_set": process_set.number, **scales}


def allreduce(
    tensors: Sequence[tf.Tensor], name: tuple[str | None, bool],
    op: int, prescale: float, postscale: float, process_set: ProcessSet,
) -> list[tf.Tensor]:
    """Tensors of one type, which are combined together."""
    reduction = _reduction(op, prescale, postscale, process_set)
    return _unordered(operations.ddl_allreduce(tensors=tensors, **reduction, **_named("allreduce", *name)))


def reducescatter(
    tensors: Sequence[tf.Tensor], name: tuple[str | None, bool],
    op: int, prescale: float, postscale: float, process_set: ProcessSet,
) -> list[tf.Tensor]:
    """The same, of which each rank gets some rows."""
    reduction = {**_reduction(op, prescale, postscale, process_set), **_move(process_set)}
    return _unordered(operations.ddl_reducescatter(tensors=tensors, **reduction, **_named("reducescatter", *name)))


def allgather(
    tensors: Sequence[tf.Tensor], name: tuple[str | None, bool], process_set: ProcessSet
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """The rows of all ranks, and how many came from each, for each tensor."""
    named = _named("allgather", *name)
    return tuple(_unordered(operations.ddl_allgather(tensors=tensors, **_move(process_set), **named)))


def broadcast(
    tensor: tf.Tensor, name: tuple[str | None, bool], root: int, process_set: ProcessSet
) -> tf.Tensor:
    """root: its number in the set."""
    named = _named("broadcast", *name)
    return _unordered(operations.ddl_broadcast(tensor=tensor, root=root, **_move(process_set), **named))


def alltoall(
    tensor: tf.Tensor, splits: tf.Tensor, name: tuple[str | None, bool], process_set: ProcessSet
) -> tuple[tf.Tensor, tf.Tensor]:
    """splits: int32, rows for each rank; empty: equal parts. The rows that came, and how many from each."""
    named = _named("alltoall", *name)
    results = operations.ddl_alltoall(tensor=tensor, splits=splits, **_move(process_set), **named)
    return tuple(_unordered(results))


def number(what: str, name: str | None) -> tf.Tensor:
    """A number of this process when the program runs: rank, size, local_rank, or local_size."""
    refuse_xla(f"{what}_op")
    return operations.ddl_number(number=what, name=name)
