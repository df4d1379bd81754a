"""Models from files, with distributed optimizers."""
from __future__ import annotations

from typing import Any, Sequence

from ddl.keras.optimizer import distributed_with_state, is_distributed


def load_with(
    keras: Any, filepath: Any, custom_optimizers: Sequence[type] | None, custom_objects: Any, compression: Any
) -> Any:
    """The model of a file, of the Keras that is given, whose optimizer goes on from the steps in the file."""
    objects = {one.__name__: one for one in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = keras.models.load_model(filepath, custom_objects=objects)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or is_distributed(optimizer):
        return model
    model.optimizer = distributed_with_state(optimizer, model.trainable_variables, compression=compression)
    if hasattr(model, "_resolve_auto_jit_compile"):  # Keras 3, which has decided it for the other optimizer
        model.jit_compile = model._resolve_auto_jit_compile()
    return model
