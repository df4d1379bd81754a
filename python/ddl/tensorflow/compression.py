"""How gradients are made smaller before they are sent."""
import tensorflow as tf

from ddl._compression import Compressor, NoneCompressor, narrow


def _narrow(dtype: tf.DType) -> type[Compressor]:
    return narrow(dtype, lambda one: one.is_floating, tf.cast)


FP16Compressor = _narrow(tf.float16)


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = _narrow(tf.bfloat16)
