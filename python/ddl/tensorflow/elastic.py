"""States of TensorFlow for training whose ranks go on when one is lost: Horovod's names, run by libddl.

    import tensorflow as tf
    import ddl.tensorflow as hvd

    @tf.function
    def step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((inputs @ weights - targets) ** 2)
        tape = hvd.DistributedGradientTape(tape)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    @hvd.elastic.run
    def train(state):
        while state.step < 1000:
            step(*batch_of(state.step, hvd.rank(), hvd.size()))
            state.step += 1
            if state.step % 10 == 0:
                state.commit()

    hvd.init()
    train(hvd.elastic.TensorFlowState([weights], step=0))

``ddl.elastic`` says what run() and the functions of a state do. A function that is traced once serves all generations:
the numbers of ranks that ddl.tensorflow uses in it are those of the time when it runs. hvd.size() is called when the
function is traced, and its value stays in it. Use hvd.size_op() there, which is asked at each step.
"""
from __future__ import annotations

from typing import Any

import numpy
import tensorflow as tf

from ddl._training import run_elastic as run
from ddl._variables import VariablesState
from ddl.elastic import HorovodInternalError, HostsUpdatedInterrupt, ObjectState, State

__all__ = [
    "HorovodInternalError", "HostsUpdatedInterrupt", "ObjectState", "State", "TensorFlowKerasState", "TensorFlowState",
    "run",
]


class TensorFlowState(VariablesState):
    """Variables, and values by names, such as epoch=0, which become attributes.

    variables: those that are trained, those of the optimizer, and all others that ranks have alike.
    session: of a graph of TensorFlow 1, whose global variables are taken if none are given; None: the default one.
    """

    def __init__(self, variables: Any = None, session: Any = None, **values: Any):
        in_graph = not tf.executing_eagerly()
        if variables is None and not in_graph:
            raise ValueError(
                "give variables to TensorFlowState, such as model.variables + optimizer.variables: there are no global "
                "variables when TensorFlow runs eagerly"
            )
        self.variables = list(tf.compat.v1.global_variables() if variables is None else variables)
        self.session = tf.compat.v1.get_default_session() if session is None and in_graph else session
        if in_graph and self.session is None:
            raise ValueError("give TensorFlowState the session of the graph, or make it in `with session.as_default()`")
        super().__init__(**values)

    def _variables(self) -> list[Any]:
        return self.variables

    def _read(self, variables: list[Any]) -> list[numpy.ndarray]:
        # Copies: numpy() may show the memory of the variable itself.
        arrays = self.session.run(variables) if self.session else [one.numpy() for one in variables]
        return [numpy.array(one) for one in arrays]

    def _write(self, variables: list[Any], arrays: list[numpy.ndarray]) -> None:
        for variable, array in zip(variables, arrays):
            if self.session:
                variable.load(array, self.session)
            else:
                variable.assign(array)

    def _name(self, variable: Any) -> str:
        return getattr(variable, "path", None) or variable.name


def __getattr__(name: str) -> Any:
    """TensorFlowKerasState is made when it is asked for: programs without Keras do not import it."""
    if name != "TensorFlowKerasState":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from ddl.keras._state import KerasState

    return KerasState


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
