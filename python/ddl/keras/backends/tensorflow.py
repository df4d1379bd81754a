"""Keras 2, and Keras 3 with TensorFlow."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy
import tensorflow as tf

from ddl.keras._gradients import Options
from ddl.tensorflow._xla import is_compiling
from ddl.tensorflow.compression import Compression
from ddl.tensorflow.reduction import Reduction


class _Reduction(Reduction):
    add_local = Reduction.register_local

    def __call__(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        if is_compiling():
            raise ValueError(
                "XLA cannot compile a step whose gradients are combined over the ranks: compile the model with "
                "jit_compile=False"
            )
        return super().__call__(gradients, variables)


def reduction(options: Options) -> Reduction:
    return _Reduction(
        options.name or "DistributedOptimizer", compression=options.compression or Compression.none,
        sparse_as_dense=options.sparse_as_dense, op=options.op,
        gradient_predivide_factor=options.gradient_predivide_factor,
        groups=options.num_groups or options.groups, process_set=options.process_set,
        scale_local_gradients=options.scale_local_gradients,
    )


def when(holds: Any, function: Callable[[list[Any]], list[Any]], gradients: list[Any]) -> list[Any]:
    # Keras calls it in the branch of the step that ends a series.
    return function(gradients)


def tensor(array: numpy.ndarray) -> tf.Tensor:
    return tf.convert_to_tensor(array)
