"""What a training of a model of Keras has reached."""
from __future__ import annotations

from typing import Any

import numpy

from ddl._variables import VariablesState
from ddl.keras._kinds import build, name_of, value_of, variables_of
from ddl.keras.optimizer import gradients_of


def _is_built(model: Any) -> bool:
    try:
        return bool(model.built and (model.weights or not model.layers))
    except ValueError:  # Keras 2: of layers that have no weights yet
        return False


class KerasState(VariablesState):
    """A model, its optimizer, and values by names, such as epoch=0, batch=0, which become attributes.

    The model is built: its layers know the shape of their inputs. optimizer: None: the one it was compiled with.
    backend: accepted, and not used.
    """

    def __init__(self, model: Any, optimizer: Any = None, backend: Any = None, **values: Any):
        if not _is_built(model):
            raise ValueError(
                "the model is not built, so a rank that is new has no variables yet to take over: give its first layer "
                "an Input, or call model.build(input_shape), before the state is made of it"
            )
        self.model = model
        self.optimizer = getattr(model, "optimizer", None) if optimizer is None else optimizer
        super().__init__(**values)

    def _variables(self) -> list[Any]:
        if self.optimizer is None:
            return list(self.model.weights)
        build(self.optimizer, self.model.trainable_variables)
        return list(self.model.weights) + variables_of(self.optimizer)

    def _own_variables(self) -> list[Any]:
        """The states of random numbers of Keras 3, such as those of Dropout."""
        shared = {id(one) for one in self.model.weights}
        return [one for one in self.model.non_trainable_variables if id(one) not in shared]

    def _read(self, variables: list[Any]) -> list[numpy.ndarray]:
        getattr(self.model, "jax_state_sync", lambda: None)()
        return [numpy.array(value_of(one)) for one in variables]

    def _write(self, variables: list[Any], arrays: list[numpy.ndarray]) -> None:
        for variable, array in zip(variables, arrays):
            variable.assign(array)

    def _name(self, variable: Any) -> str:
        return name_of(variable)

    def restore(self) -> None:
        if hasattr(self.model, "jax_state_sync"):
            # What a step has left that has failed, for which JAX has used up the arrays of the variables.
            self.model._jax_state, self.model._jax_state_synced = None, True
        super().restore()

    def on_reset(self) -> None:
        super().on_reset()
        gradients = None if self.optimizer is None else gradients_of(self.optimizer)
        if gradients is None:
            return
        gradients.drop_open(self.optimizer)
        if gradients.keeps_ranks():  # Keras makes the functions anew
            for name in ("train_function", "test_function", "predict_function"):
                setattr(self.model, name, None)
