"""States of training by Horovod's names. The number of ranks does not change: if a rank dies, the job ends."""
from __future__ import annotations

import functools
from typing import Any, Callable

import tensorflow as tf

from ddl._horovod import broadcast_object
from ddl.tensorflow._variables import broadcast_variables


class TensorFlowState:
    """Variables, and values by names, such as epoch=0, which are attributes.

    commit() keeps them, restore() takes them back to the last commit, sync() gives all ranks those of rank 0.
    session: of a graph of TensorFlow 1, whose global variables are taken if none are given.
    """

    def __init__(self, variables: Any = None, session: Any = None, **values: Any):
        self.session = session
        in_graph = not variables and not tf.executing_eagerly()
        self.variables = list(tf.compat.v1.global_variables() if in_graph else variables or ())
        self._names = list(values)
        vars(self).update(values)
        self.save()

    def _run(self, operations: Any) -> Any:
        return operations if tf.executing_eagerly() else self.session.run(operations)

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def save(self) -> None:
        # Copies: numpy() may show the memory of the variable itself.
        arrays = [one.numpy() for one in self.variables] if tf.executing_eagerly() else self._run(self.variables)
        self._saved = [array.copy() for array in arrays], self._values()

    def commit(self) -> None:
        self.save()

    def restore(self) -> None:
        arrays, values = self._saved
        for variable, array in zip(self.variables, arrays):
            if tf.executing_eagerly():
                variable.assign(array)
            else:
                variable.load(array, self.session)
        vars(self).update(values)

    def sync(self) -> None:
        """Collective."""
        self._run(broadcast_variables(self.variables, root_rank=0))
        vars(self).update(broadcast_object(self._values()))
        self.save()


def run(function: Callable[..., Any]) -> Callable[..., Any]:
    """A training function of a state, whose ranks begin with the state of rank 0. If a rank dies, the job ends."""

    @functools.wraps(function)
    def synchronized(state: TensorFlowState, *arguments: Any, **named: Any) -> Any:
        state.sync()
        return function(state, *arguments, **named)

    return synchronized
