"""Batch normalisation over the batches of all ranks."""
from __future__ import annotations

import tensorflow as tf

from ddl._horovod import Sum, global_process_set, has_others
from ddl.tensorflow._reductions import allreduce


_IS_KERAS_2 = hasattr(tf.keras.layers.BatchNormalization, "_calculate_mean_and_var")


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """Means and variances are those of all ranks' batches together, whose sizes may differ. fused must be False."""

    def __init__(self, fused=False, **kwargs):
        if fused in (True, None):
            raise ValueError("SyncBatchNormalization does not support fused=True")
        kwargs.setdefault("name", "sync_batch_normalization")
        super().__init__(**kwargs, **({"fused": False} if _IS_KERAS_2 else {}))

    def _of_all_ranks(self, inputs, axes, keepdims, mask):
        """The mean and the variance, summed in float32 at least."""
        if mask is not None:
            raise ValueError("SyncBatchNormalization takes no mask")
        values = inputs if inputs.dtype == tf.float64 else tf.cast(inputs, tf.float32)
        total, squares = (tf.reduce_sum(one, axes, keepdims=keepdims) for one in (values, tf.square(values)))
        count = tf.cast(tf.size(values) / tf.maximum(tf.size(total), 1), values.dtype)
        sums = tf.concat([tf.reshape(count, [1]), tf.reshape(total, [-1]), tf.reshape(squares, [-1])], 0)
        if has_others(global_process_set):
            sums = allreduce(sums, op=Sum, name=f"{self.name}_moments")
        mean, mean_square = (tf.reshape(one, tf.shape(total)) / sums[0] for one in tf.split(sums[1:], 2))
        variance = tf.maximum(mean_square - tf.square(mean), 0)
        return tf.cast(mean, inputs.dtype), tf.cast(variance, inputs.dtype)

    if _IS_KERAS_2:

        def _moments(self, inputs, reduction_axes, keep_dims, mask=None):
            return self._of_all_ranks(inputs, reduction_axes, keep_dims, mask)

    else:

        def _moments(self, inputs, mask):
            return self._of_all_ranks(inputs, self._reduction_axes, False, mask)
