"""How gradients are made smaller before they are sent."""
from __future__ import annotations

from typing import Any

import tensorflow as tf


class Compressor:
    """compress() gives what is sent, and what decompress() needs."""

    @staticmethod
    def compress(tensor: tf.Tensor) -> tuple[tf.Tensor, Any]:
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: tf.Tensor, context: Any) -> tf.Tensor:
        raise NotImplementedError


class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor: tf.Tensor) -> tuple[tf.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: tf.Tensor, context: Any) -> tf.Tensor:
        return tensor


def _as_type(dtype: tf.DType) -> type[Compressor]:
    class Narrow(Compressor):
        """Floating-point tensors as floats of 16 bits."""

        @staticmethod
        def compress(tensor: tf.Tensor) -> tuple[tf.Tensor, Any]:
            if not tensor.dtype.is_floating or tensor.dtype == dtype:
                return tensor, None
            return tf.cast(tensor, dtype), tensor.dtype

        @staticmethod
        def decompress(tensor: tf.Tensor, context: Any) -> tf.Tensor:
            return tensor if context is None else tf.cast(tensor, context)

    return Narrow


FP16Compressor = _as_type(tf.float16)


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = _as_type(tf.bfloat16)
