"""Keras 2 and Keras 3 by one set of functions: an optimizer's variables, its rate, and its velocities."""
from __future__ import annotations

from typing import Any, Sequence

import numpy


def is_of_keras_3(optimizer: Any) -> bool:
    return hasattr(optimizer, "stateless_apply")


def backend_of(optimizer: Any) -> str:
    """What computes: "tensorflow", "jax" or "torch". Keras 2 has TensorFlow alone."""
    if not is_of_keras_3(optimizer):
        return "tensorflow"
    import keras

    return keras.config.backend()


def inner(optimizer: Any) -> Any:
    """The optimizer that takes the steps, without what scales the loss for it."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def is_built(optimizer: Any) -> bool:
    """Whether it has its variables, such as velocities, by the model's."""
    if is_of_keras_3(optimizer):
        return optimizer.built
    one = inner(optimizer)
    return bool(getattr(one, "_built", False) or getattr(one, "_slots", None))


def build(optimizer: Any, variables: Sequence[Any]) -> None:
    """Makes the optimizer's variables, as the first step does."""
    if is_built(optimizer):
        return
    if is_of_keras_3(optimizer):
        import keras

        with keras.name_scope(optimizer.name):
            optimizer.build(variables)
        optimizer.built = True
    elif hasattr(optimizer, "_create_all_weights"):  # a legacy one
        optimizer._create_all_weights(variables)
    else:
        optimizer.build(variables)


def variables_of(optimizer: Any) -> list[Any]:
    variables = optimizer.variables
    return list(variables() if callable(variables) else variables)


def value_of(variable: Any) -> numpy.ndarray:
    if hasattr(variable, "numpy") and not hasattr(variable, "detach"):  # a tensor of PyTorch may be on a GPU
        return numpy.asarray(variable.numpy())
    import keras

    return numpy.asarray(keras.ops.convert_to_numpy(variable))


def name_of(variable: Any) -> str:
    return getattr(variable, "path", None) or variable.name


def rate_of(optimizer: Any) -> float:
    return float(value_of(optimizer.learning_rate))


def velocities_of(optimizer: Any) -> list[Any]:
    """The variables v of optimizers with v = momentum * v - rate * gradient; none without momentum."""
    one = inner(optimizer)
    if hasattr(one, "get_slot"):  # a legacy one
        slots = [slots["momentum"] for slots in one._slots.values() if "momentum" in slots]
        return slots if "momentum" in one._hyper else []
    if not getattr(one, "momentum", None):
        return []
    velocities = getattr(one, "momentums", None) or getattr(one, "_momentums", None) or []
    return [velocity for velocity in velocities if velocity is not None]
