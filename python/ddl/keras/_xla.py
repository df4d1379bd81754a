"""TensorFlow compiles steps by XLA, if Keras 3 may choose and there are GPUs. XLA has no collective of libddl."""
from __future__ import annotations

import functools
from typing import Any, Callable

from ddl.keras.optimizer import is_distributed


def _without_xla(resolve: Callable[[Any], bool]) -> Callable[[Any], bool]:
    @functools.wraps(resolve)
    def resolved(model: Any) -> bool:
        return False if is_distributed(getattr(model, "optimizer", None)) else resolve(model)

    resolved._is_ddls = True
    return resolved


def choose_no_xla(keras: Any) -> None:
    """From now on, jit_compile="auto" is False for models with a distributed optimizer, on TensorFlow."""
    name = "_resolve_auto_jit_compile"
    owner = next((one for one in keras.Model.__mro__ if name in vars(one)), None)
    if owner is None or keras.config.backend() != "tensorflow":
        return
    resolve = vars(owner)[name]
    if not hasattr(resolve, "_is_ddls"):
        setattr(owner, name, _without_xla(resolve))
