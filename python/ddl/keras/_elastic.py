"""What a training has reached: kept, taken back, and shared."""
from __future__ import annotations

import functools
from typing import Any, Callable

import numpy

from ddl._horovod import broadcast_object
from ddl.keras._kinds import build, value_of, variables_of
from ddl.keras._variables import broadcast_variables


class KerasState:
    """A model, its optimizer, and values by names, such as epoch=0, which are attributes.

    commit() keeps them, restore() takes them back to the last commit, sync() gives all ranks those of rank 0.
    """

    def __init__(self, model: Any, optimizer: Any = None, **values: Any):
        self.model = model
        self.optimizer = getattr(model, "optimizer", None) if optimizer is None else optimizer
        self._names = list(values)
        vars(self).update(values)
        self.save()

    def _variables(self) -> list[Any]:
        model, optimizer = self.model, self.optimizer
        getattr(model, "jax_state_sync", lambda: None)()
        if optimizer is None:
            return list(model.weights)
        build(optimizer, model.trainable_variables)
        return list(model.weights) + variables_of(optimizer)

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def save(self) -> None:
        self._saved = [numpy.array(value_of(one)) for one in self._variables()], self._values()

    def commit(self) -> None:
        self.save()

    def restore(self) -> None:
        arrays, values = self._saved
        for variable, array in zip(self._variables(), arrays):
            variable.assign(array)
        vars(self).update(values)

    def sync(self) -> None:
        """Collective."""
        broadcast_variables(self._variables())
        vars(self).update(broadcast_object(self._values()))
        self.save()


def run(function: Callable[..., Any]) -> Callable[..., Any]:
    """A training function of a state, whose ranks begin with the state of rank 0. If a rank dies, the job ends."""

    @functools.wraps(function)
    def synchronized(state: KerasState, *arguments: Any, **named: Any) -> Any:
        state.sync()
        return function(state, *arguments, **named)

    return synchronized


class CommitState:
    """Commits the state after every batches_per_commit batches, and after each epoch."""

    def __init__(self, state: KerasState, batches_per_commit: int = 1):
        super().__init__()
        self.state = state
        self.batches_per_commit = batches_per_commit
        self._batches = 0

    def on_train_begin(self, logs: Any = None) -> None:
        self._batches = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._batches += 1
        if self._batches % self.batches_per_commit == 0:
            self.state.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.commit()


class UpdateBatchState:
    """Keeps the number of the batch in state.batch; 0 after an epoch."""

    def __init__(self, state: KerasState):
        super().__init__()
        self.state = state

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.state.batch = batch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.batch = 0


class UpdateEpochState:
    """Keeps the number of epochs in state.epoch, which goes on from the state's when fit() is called again."""

    def __init__(self, state: KerasState):
        super().__init__()
        self.state = state
        self._first = state.epoch

    def on_train_begin(self, logs: Any = None) -> None:
        self._first = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.epoch = self._first + epoch + 1
