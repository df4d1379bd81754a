"""What ddl.keras needs of the framework that computes for Keras. Every module here has the same names:

Compression           how gradients are made smaller
reduction(options)    an object: add_local(variable), and (gradients, variables) -> gradients
when(holds, function, gradients)   function's gradients if it holds, else those that were given, or any others
tensor(array)         a tensor of the framework with an array's values
"""
from __future__ import annotations

import importlib
from typing import Any


def of(name: str) -> Any:
    """name: as keras.config.backend() says it."""
    if name not in ("tensorflow", "jax", "torch"):
        raise ValueError(f"Keras computes with {name} (KERAS_BACKEND); ddl.keras works with tensorflow, jax and torch")
    return importlib.import_module(f"ddl.keras.backends.{name}")


def current() -> Any:
    """What computes for the package keras."""
    import keras

    return of(keras.config.backend() if hasattr(keras, "config") else "tensorflow")  # Keras 2 has TensorFlow alone
