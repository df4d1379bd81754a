"""What an optimizer of Keras 3 does instead of its own. Its class stays a base, so isinstance() holds."""
from __future__ import annotations

from typing import Any, Sequence

from ddl.keras._gradients import Gradients, Options


class _Shared:
    """_ddl_options is the class's: what from_config() makes, Keras's copy of an optimizer, is distributed, too."""

    _ddl: Gradients | None = None
    _ddl_options: Options

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        self._ddl = Gradients(self, self._ddl_options)

    def register_local_var(self, variable: Any) -> None:
        """The variable's gradients stay this rank's own."""
        self._ddl.add_local(variable)

    def _combined(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Those of one pass, or the means of several, such that Keras's mean becomes what the options say."""
        options = self._ddl.options
        combined = self._ddl.combined(gradients, variables)
        if options.backward_passes_per_step == 1 or options.average_aggregated_gradients:
            return combined
        return [None if gradient is None else gradient * options.backward_passes_per_step for gradient in combined]


class Distributed(_Shared):
    """Combines gradients before they are clipped. If Keras sums them over several passes, it combines the sums."""

    def _combines_sums(self) -> bool:
        """Keras 3.3 and 3.4 clip each pass before they add it: there each pass is combined. They have no _iterations,
        and Keras before 3.3 has no sums."""
        return bool(getattr(self, "gradient_accumulation_steps", None)) and hasattr(self, "_iterations")

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        if not self._combines_sums() and len(grads) > 0:
            if trainable_variables is not None:
                trainable_variables = list(trainable_variables)
            known = self._trainable_variables if trainable_variables is None else trainable_variables
            grads = self._combined(grads, known)
        super().apply(grads, trainable_variables)

    def _backend_apply_gradients(self, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
        self._ddl.variables = list(trainable_variables)
        super()._backend_apply_gradients(grads, trainable_variables)

    def _clip_gradients(self, grads: Sequence[Any]) -> Sequence[Any]:
        if self._combines_sums():
            # Of a step that does not end a series, compiled code computes what it does not use.
            ends = (self._iterations + 1) % self.gradient_accumulation_steps == 0
            grads = self._ddl.backend.when(ends, self._combined_sums, list(grads))
        return super()._clip_gradients(grads)

    def _combined_sums(self, means: list[Any]) -> list[Any]:
        return self._combined(means, self._ddl.variables)

    def _backend_reset_gradient_accumulators(self) -> None:
        # With PyTorch, Keras multiplies by zero, and an infinite sum would stay one that is not a number.
        for total in self._accumulated_gradients:
            if total is not None:
                total.assign(_zeros(total))

    def __setattr__(self, name: str, value: Any) -> None:
        # LossScaleOptimizer does this to the optimizer that it is made around.
        if name == "loss_scale_factor" and value is None and self._ddl is not None:
            raise ValueError(
                "a LossScaleOptimizer around a DistributedOptimizer would skip steps on some ranks only. Set the "
                "policy mixed_float16 before DistributedOptimizer() is called, or call DistributedOptimizer("
                "LossScaleOptimizer(optimizer))"
            )
        super().__setattr__(name, value)


def _zeros(variable: Any) -> Any:
    import keras

    return keras.ops.zeros(variable.shape, dtype=variable.dtype)


class DistributedLossScale(_Shared):
    """A LossScaleOptimizer that combines gradients before it looks for infinite ones: all ranks skip the same steps."""

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
        known = self._trainable_variables if trainable_variables is None else trainable_variables
        super().apply(self._combined(grads, known), trainable_variables)

    def stateless_apply(
        self, optimizer_variables: Sequence[Any], grads: Sequence[Any], trainable_variables: Sequence[Any]
    ) -> Any:
        grads = self._combined(grads, self._trainable_variables)
        return super().stateless_apply(optimizer_variables, grads, trainable_variables)
