"""Variables that ranks get from each other, in functions, eagerly, and in graphs."""
from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf

import ddl
from ddl._horovod import ProcessSet, broadcast_object, global_process_set, raise_on_all
from ddl.errors import Mismatch
from ddl.tensorflow._ops import broadcast


def _difference(root: list[str], mine: list[str], root_rank: int) -> Mismatch | None:
    """The first one between what root and this rank would broadcast."""
    for place in range(max(len(root), len(mine))):
        theirs, ours = (one[place] if place < len(one) else "absent" for one in (root, mine))
        if theirs != ours:
            return Mismatch(
                f"variable {place} is {ours} on rank {ddl.rank()} and {theirs} on rank {root_rank}; "
                "make the models alike on all ranks"
            )
    return None


def _compare(variables: Sequence[Any], root_rank: int, process_set: ProcessSet) -> None:
    mine = [f"{tf.as_dtype(one.dtype).name} {list(one.shape)}" for one in variables]
    root = broadcast_object(mine, root_rank, process_set=process_set)
    raise_on_all(_difference(root, mine, root_rank), process_set)


_CALLS = "ddl_broadcasts_of_variables"  # a collection of a graph


def _broadcast_each(variables: Sequence[Any], root_rank: int, name: str | None, process_set: ProcessSet) -> list[Any]:
    """Under their places: names of Keras have counters, which may differ from rank to rank. A graph may run several
    calls of the program at once, so each has names of its own there."""
    prefix = f"{name}_" if name else ""
    if not tf.executing_eagerly():
        calls = tf.compat.v1.get_default_graph().get_collection_ref(_CALLS)
        calls.append(name or "variables")
        prefix = f"{prefix}call_{len(calls)}_" if len(calls) > 1 else prefix
    return [
        broadcast(tf.convert_to_tensor(variable), root_rank, f"{prefix}variable_{place}", True, process_set)
        for place, variable in enumerate(variables)
    ]


def broadcast_(variables, root_rank, name=None, process_set=global_process_set):
    """Root's values, in the variables, which are returned; in a graph, tensors that have these values afterwards."""
    if not isinstance(variables, (list, tuple)):
        return broadcast_([variables], root_rank, name, process_set)[0]
    received = _broadcast_each(variables, root_rank, name, process_set)
    assigned = [variable.assign(value) for variable, value in zip(variables, received)]
    return list(variables) if tf.executing_eagerly() else assigned


def broadcast_variables(variables, root_rank, process_set=global_process_set, inplace=False):
    """Root's values, in variables that are alike on all ranks. In a graph of TensorFlow 1: the operation for it."""
    variables = list(variables() if callable(variables) else variables)
    if tf.executing_eagerly():
        _compare(variables, root_rank, process_set)
        # One function, so that the variables are on their way together.
        tf.function(lambda: broadcast_(variables, root_rank, None, process_set) and None)()
        return None
    return tf.group(*broadcast_(variables, root_rank, None, process_set))


def broadcast_global_variables(root_rank):
    """The operation of a graph of TensorFlow 1 that gives every rank root's values."""
    if tf.executing_eagerly():
        raise RuntimeError(
            "there are no global variables when TensorFlow runs eagerly; call broadcast_variables(model.variables, 0)"
        )
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Gives every rank root's values when a session begins. device: where the values are received."""

    def __init__(self, root_rank, device=""):
        super().__init__()
        self.root_rank, self.device = root_rank, device
        self.bcast_op = None

    def begin(self):
        if self.bcast_op is None or self.bcast_op.graph is not tf.compat.v1.get_default_graph():
            with tf.device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session, coord):
        session.run(self.bcast_op)
