"""What an optimizer of Keras 2 does instead of its own, the legacy ones, too. Its class stays a base."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import tensorflow as tf

from ddl.keras._gradients import Gradients, Options


class Passes:
    """Sums gradients of several passes; the sums are combined, and a step is taken, in the last one."""

    def __init__(self, options: Options, combine: Callable[..., list[Any]]):
        self._options = options
        self._combine = combine
        with tf.init_scope():
            self.counter = tf.Variable(0, dtype=tf.int32, trainable=False, name="passes")
        self._sums: list[tf.Variable | None] = []
        self.is_begun = False

    def _ends(self) -> tf.Tensor:
        return tf.equal(self.counter, self._options.backward_passes_per_step)

    def _dense(self, gradient: Any) -> Any:
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        if not self._options.sparse_as_dense:
            raise ValueError("sparse gradients of several passes can be summed only with sparse_as_dense=True")
        return tf.convert_to_tensor(gradient)

    def gradients(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """In the last pass the combined sums, and else the gradients themselves, which apply() does not use."""
        self.is_begun = True
        dense = [self._dense(gradient) for gradient in gradients]
        with tf.init_scope():
            if not self._sums:
                self._sums = [
                    None if gradient is None else tf.Variable(tf.zeros(variable.shape, variable.dtype), trainable=False)
                    for gradient, variable in zip(dense, variables)
                ]
        there = [i for i, gradient in enumerate(dense) if gradient is not None]
        for i in there:
            self._sums[i].assign_add(dense[i])
        self.counter.assign_add(1)

        def combined() -> list[Any]:
            scale = self._options.backward_passes_per_step if self._options.average_aggregated_gradients else 1
            sums = [None if one is None else one / scale for one in self._sums]
            results = self._combine(sums, list(variables))
            return [results[i] for i in there]

        results: list[Any] = [None] * len(dense)
        chosen = tf.cond(self._ends(), combined, lambda: [tf.identity(dense[i]) for i in there])
        for i, gradient in zip(there, chosen):
            results[i] = gradient
        return results

    def drop_open(self) -> None:
        for one in (self.counter, *self._sums):
            if one is not None:
                one.assign(tf.zeros_like(one))

    def apply(self, step: Callable[[], Any], iterations: tf.Variable) -> None:
        def take() -> tf.Tensor:
            step()
            for one in self._sums:
                if one is not None:
                    one.assign(tf.zeros_like(one))  # a difference would not clear what is infinite
            self.counter.assign(0)
            return tf.constant(True)

        def go_on() -> tf.Tensor:
            iterations.assign_add(1)
            return tf.constant(False)

        tf.cond(self._ends(), take, go_on)


class Distributed:
    """Combines gradients when they have been computed: a LossScaleOptimizer, which looks at them next, sees the same
    on all ranks."""

    _ddl: Gradients | None = None
    _ddl_options: Options

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        self._ddl = Gradients(self, self._ddl_options)
        several = self._ddl_options.backward_passes_per_step > 1
        # Programs of Horovod read its counter.
        self._agg_helper = Passes(self._ddl_options, self._ddl.combined) if several else None

    def register_local_var(self, variable: Any) -> None:
        """The variable's gradients stay this rank's own."""
        self._ddl.add_local(variable)

    def compute_gradients(self, loss: Any, var_list: Any, tape: Any = None) -> list[tuple[Any, Any]]:
        return self._compute_gradients(loss, var_list, None, tape)

    def _compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
    ) -> list[tuple[Any, Any]]:
        tape = tf.GradientTape() if tape is None else tape
        own = super()
        if hasattr(own, "_compute_gradients"):  # a legacy one
            pairs = own._compute_gradients(loss, var_list, grad_loss, tape=tape)
        else:
            pairs = own.compute_gradients(loss, var_list, tape=tape)
        gradients, variables = zip(*pairs)
        return list(zip(self._combined(gradients, variables), variables))

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        return self._combined(super().get_gradients(loss, params), params)

    def _combined(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        if self._agg_helper is None:
            return self._ddl.combined(gradients, variables)
        if getattr(self, "_is_wrapped_by_loss_scale_optimizer", False):
            raise ValueError(
                "a LossScaleOptimizer looks at the gradients of each pass, which are each rank's own until the last "
                "one: with mixed_float16, backward_passes_per_step has to be 1"
            )
        return self._agg_helper.gradients(gradients, variables)

    def apply_gradients(self, grads_and_vars: Any, *arguments: Any, **named: Any) -> Any:
        pairs, own = list(grads_and_vars), super()
        if self._agg_helper is None or not self._agg_helper.is_begun:
            return own.apply_gradients(pairs, *arguments, **named)
        self._agg_helper.apply(lambda: own.apply_gradients(pairs, *arguments, **named), self.iterations)
        return self.iterations
