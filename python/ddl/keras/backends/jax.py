"""Keras 3 with JAX."""
from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy

import ddl.jax
from ddl._horovod import set_of
from ddl.keras._gradients import Options
from ddl.keras.backends import _grouped


class Compressor:
    """Gradients as they are."""

    dtype: Any = None

    @classmethod
    def compress(cls, tensor: Any) -> tuple[Any, Any]:
        if cls.dtype is None or not jnp.issubdtype(tensor.dtype, jnp.floating):
            return tensor, None
        return tensor.astype(cls.dtype), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, context: Any) -> Any:
        return tensor if context is None else tensor.astype(context)


class FP16Compressor(Compressor):
    """Floating-point gradients as floats of 16 bits."""

    dtype = jnp.float16


class BF16Compressor(Compressor):
    dtype = jnp.bfloat16


class Compression:
    none = Compressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def _start(gradients: list[Any], name: str, op: Any, prescale: float, postscale: float, process_set: Any) -> Any:
    options = dict(prescale=prescale, postscale=postscale, process_set=set_of(process_set))
    combined = ddl.jax.grouped_allreduce(gradients, op.number, name=name, **options)
    return lambda: combined


def reduction(options: Options) -> _grouped.Reduction:
    ddl.jax.init()
    return _grouped.Reduction(options, Compression.none, _start)


def when(holds: Any, function: Callable[[list[Any]], list[Any]], gradients: list[Any]) -> list[Any]:
    return jax.lax.cond(holds, function, lambda same: same, gradients)


def tensor(array: numpy.ndarray) -> jax.Array:
    return jnp.asarray(array)
