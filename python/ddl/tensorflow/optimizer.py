"""Optimizers of tf.compat.v1.train, whose gradients are those of all ranks."""
from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf

from ddl._horovod import Adasum, Average, global_process_set
from ddl.tensorflow.compression import Compression
from ddl.tensorflow.reduction import Reduction


class _Passes:
    """Gradients that are summed over several passes of a graph, and combined over the ranks after the last one."""

    def __init__(self, reduction: Reduction, passes: int, sparse_as_dense: bool, averages: bool):
        if tf.executing_eagerly():
            raise ValueError("backward_passes_per_step > 1 of an optimizer of TensorFlow 1 needs a graph")
        self._reduction, self._passes = reduction, passes
        self._sparse_as_dense, self._averages = sparse_as_dense, averages
        self._count: tf.Variable | None = None

    def _local_variable(self, name: str, like: tf.Tensor) -> tf.Variable:
        with tf.compat.v1.variable_scope(f"{self._reduction.name}_passes", reuse=tf.compat.v1.AUTO_REUSE):
            return tf.compat.v1.get_variable(
                name, initializer=like, trainable=False, collections=[tf.compat.v1.GraphKeys.LOCAL_VARIABLES]
            )

    def _dense(self, gradient: Any) -> Any:
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        if not self._sparse_as_dense:
            raise ValueError("IndexedSlices and backward_passes_per_step > 1 need sparse_as_dense=True")
        return tf.convert_to_tensor(gradient)

    def combine(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """The combined sums after the last pass; before that, sums that apply() does not use."""
        results = [self._dense(gradient) for gradient in gradients]
        places = [place for place, gradient in enumerate(results) if gradient is not None]
        self._count = self._local_variable("count", tf.zeros([], tf.int32))
        sums = [
            self._local_variable(str(place), tf.zeros(results[place].shape, results[place].dtype)) for place in places
        ]
        with tf.control_dependencies([self._count.assign_add(1)]):
            added = [one.assign_add(results[place]) for one, place in zip(sums, places)]
        with tf.control_dependencies(added):
            is_last = tf.equal(self._count.read_value() % self._passes, 0)

        def combined() -> list[tf.Tensor]:
            totals = [one.read_value() for one in sums]
            if self._averages:
                totals = [total / self._passes for total in totals]
            found = self._reduction(totals, [variables[place] for place in places])
            # Zeros, and not a difference: an infinity would become NaN.
            with tf.control_dependencies(found):
                cleared = [one.assign(tf.zeros_like(one)) for one in sums]
            with tf.control_dependencies([one.op if hasattr(one, "op") else one for one in cleared]):
                return [tf.identity(one) for one in found]

        for place, one in zip(places, tf.cond(is_last, combined, lambda: [one.read_value() for one in sums])):
            results[place] = one
        self._is_last = is_last
        return results

    def apply(self, apply: Any, gradients: Sequence[Any], global_step: Any) -> tf.Operation:
        """After the last pass what apply() does; after the others a step is counted, and nothing else."""
        if self._count is None:
            raise ValueError("call compute_gradients() before apply_gradients()")

        def counted() -> tf.Operation:
            return tf.no_op() if global_step is None else tf.group(global_step.assign_add(1))

        with tf.control_dependencies([one for one in gradients if one is not None]):
            return tf.cond(self._is_last, lambda: tf.group(apply()), counted)


class _DistributedOptimizer(tf.compat.v1.train.Optimizer):
    """Another optimizer, with gradients that are combined over the ranks."""

    def __init__(self, optimizer: Any, name: str, use_locking: bool, reduction: Reduction, passes: _Passes | None):
        super().__init__(name=name, use_locking=use_locking)
        self._optimizer, self._reduction, self._passes = optimizer, reduction, passes

    def register_local_var(self, var):
        """The gradient of this variable stays this rank's own."""
        self._reduction.register_local(var)

    def compute_gradients(self, *args, **kwargs):
        gradients, variables = zip(*self._optimizer.compute_gradients(*args, **kwargs))
        combine = self._reduction if self._passes is None else self._passes.combine
        return list(zip(combine(gradients, variables), variables))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = list(grads_and_vars)

        def apply() -> Any:
            return self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)

        if self._passes is None:
            return apply()
        return self._passes.apply(apply, [gradient for gradient, _ in pairs], global_step)

    def get_slot(self, *args, **kwargs):
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        return self._optimizer.variables(*args, **kwargs)


def DistributedOptimizer(
    optimizer,
    name=None,
    use_locking=False,
    device_dense="",
    device_sparse="",
    compression=Compression.none,
    sparse_as_dense=False,
    backward_passes_per_step=1,
    op=Average,
    gradient_predivide_factor=1.0,
    average_aggregated_gradients=False,
    num_groups=0,
    groups=None,
    process_set=global_process_set,
    scale_local_gradients=True,
):
    """The optimizer, with gradients that are combined over the ranks: one of tf.compat.v1.train, or one of Keras."""
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be positive")
    if not isinstance(optimizer, tf.compat.v1.train.Optimizer):
        from ddl.tensorflow.keras import DistributedOptimizer as of_keras

        return of_keras(
            optimizer, name=name, device_dense=device_dense, device_sparse=device_sparse, compression=compression,
            sparse_as_dense=sparse_as_dense, gradient_predivide_factor=gradient_predivide_factor, op=op,
            backward_passes_per_step=backward_passes_per_step, groups=groups, num_groups=num_groups,
            average_aggregated_gradients=average_aggregated_gradients, process_set=process_set,
            scale_local_gradients=scale_local_gradients,
        )
    if isinstance(optimizer, _DistributedOptimizer):
        raise ValueError("this optimizer is a DistributedOptimizer already")
    if op is Adasum:
        raise NotImplementedError(
            "an optimizer of TensorFlow 1 combines gradients by Average or Sum, and no changes of variables by Adasum; "
            "combine gradients by allreduce(op=Adasum), or by DistributedGradientTape"
        )
    name = name or f"Distributed{type(optimizer).__name__}"
    reduction = Reduction(
        name, device_dense, device_sparse, compression, sparse_as_dense, op, gradient_predivide_factor, num_groups,
        groups, process_set, scale_local_gradients,
    )
    passes = None
    if backward_passes_per_step > 1:
        passes = _Passes(reduction, backward_passes_per_step, sparse_as_dense, average_aggregated_gradients)
    return _DistributedOptimizer(optimizer, name, use_locking, reduction, passes)
