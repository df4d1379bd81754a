"""How an optimizer combines gradients: the options that DistributedOptimizer() has been given, and who carries them
out."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from ddl._horovod import Average, ProcessSet, global_process_set
from ddl.keras._checks import check_strategy
from ddl.keras._kinds import backend_of, inner


@dataclass(frozen=True)
class Options:
    compression: Any = None
    sparse_as_dense: bool = False
    gradient_predivide_factor: float = 1.0
    op: Any = Average
    backward_passes_per_step: int = 1
    average_aggregated_gradients: bool = False
    num_groups: int = 0
    groups: Any = None
    process_set: ProcessSet = global_process_set
    scale_local_gradients: bool = True
    name: str | None = None


class Gradients:
    """Of one optimizer: its gradients, combined over the ranks by what its Keras computes with."""

    def __init__(self, optimizer: Any, options: Options):
        from ddl.keras.backends import of

        self.options = options
        self.backend = of(backend_of(optimizer))
        self._reduction = self.backend.reduction(options)
        # Of sums over several passes, the variables; Keras gives only the sums where they are to be combined.
        self.variables: Sequence[Any] = ()

    def add_local(self, variable: Any) -> None:
        """The variable's gradients stay each rank's own."""
        self._reduction.add_local(variable)

    def drop_open(self, optimizer: Any) -> None:
        """Forgets sums of passes before a step, which a rank that is new does not have."""
        passes = getattr(inner(optimizer), "_agg_helper", None)  # of Keras 2
        if passes is not None:
            passes.drop_open()

    def keeps_ranks(self) -> bool:
        """Whether a step that is compiled is for the ranks that there were at that time."""
        return self.options.process_set is not global_process_set or getattr(self._reduction, "keeps_size", False)

    def combined(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """None, of a variable that the loss does not depend on, stays None."""
        check_strategy()
        return self._reduction(list(gradients), list(variables))
