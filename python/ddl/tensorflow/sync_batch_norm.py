"""Batch normalisation over the batches of all ranks."""
from __future__ import annotations

import tensorflow as tf

from ddl._horovod import Sum, global_process_set
from ddl.tensorflow._reductions import allreduce


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """Means and variances are those of all ranks' batches together, whose sizes may differ. fused must be False."""

    def __init__(self, fused=False, **kwargs):
        if fused in (True, None):
            raise ValueError("SyncBatchNormalization does not support fused=True")
        kwargs.setdefault("name", "sync_batch_normalization")
        if tf.keras.__version__.startswith("2"):
            kwargs["fused"] = False
        super().__init__(**kwargs)

    def _summed(self, inputs, axes, keepdims):
        """The number of elements that a mean is of, and the sums of elements and of their squares, in float32 at least."""
        values = inputs if inputs.dtype == tf.float64 else tf.cast(inputs, tf.float32)
        count = tf.cast(tf.size(values), values.dtype)
        sums = [tf.reduce_sum(one, axes, keepdims=keepdims) for one in (values, tf.square(values))]
        count = count / tf.cast(tf.maximum(tf.size(sums[0]), 1), values.dtype)
        together = tf.concat([tf.reshape(count, [1]), *(tf.reshape(one, [-1]) for one in sums)], 0)
        if global_process_set.size() > 1:
            together = allreduce(together, op=Sum, name=f"{self.name}_moments", ignore_name_scope=False)
        shape = tf.shape(sums[0])
        first, second = tf.split(together[1:], 2)
        return together[0], tf.reshape(first, shape), tf.reshape(second, shape)

    def _all_ranks_moments(self, inputs, axes, keepdims):
        count, total, squares = self._summed(inputs, axes, keepdims)
        mean = total / count
        variance = tf.maximum(squares / count - tf.square(mean), 0)
        return tf.cast(mean, inputs.dtype), tf.cast(variance, inputs.dtype)

    # Keras 2 and 3 ask for these, each by its own name.

    def _calculate_mean_and_var(self, inputs, reduction_axes, keep_dims, **kwargs):
        return self._all_ranks_moments(inputs, reduction_axes, keep_dims)

    def _moments(self, inputs, *args, **kwargs):
        if args and not isinstance(args[0], (list, tuple)):  # of Keras 3: the mask
            return self._all_ranks_moments(inputs, self._reduction_axes, False)
        axes = args[0] if args else kwargs.get("reduction_axes", getattr(self, "_reduction_axes", None))
        keepdims = args[1] if len(args) > 1 else kwargs.get("keep_dims", False)
        return self._all_ranks_moments(inputs, axes, keepdims)
