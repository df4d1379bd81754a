"""What the callbacks of elastic training do; ddl.keras.elastic and ddl.tensorflow.keras.elastic make classes of it.

A commit keeps where the training is. So CommitState lets the others say it first, in whatever order they are given.
"""
from __future__ import annotations

from array import array
from typing import Any

from ddl._context import is_elastic
from ddl._horovod import global_process_set, set_of
from ddl._tensors import allreduce_async, numbered
from ddl.keras._callbacks import end_together


def _all_go_on() -> bool:
    """Whether no rank is at the end of its epoch, where it would not commit with the others. Collective."""
    if not is_elastic():
        return True
    everyone = set_of(global_process_set)
    ranks, name = memoryview(array("f", [1])), f"allreduce.commit.{numbered('commit', everyone)}"
    allreduce_async(ranks, name, out=ranks, process_set=everyone, zeros_if_joined=True).wait()
    return round(ranks[0]) == everyone.size


def _followers(state: Any) -> list[Any]:
    """The callbacks of the fit() that runs, which keep a number in the state."""
    return vars(state).setdefault("_followers", [])


class CommitState:
    """Commits the state after every batches_per_commit batches, and after each epoch.

    If Keras knows how many batches an epoch has, a commit after the last one counts the epoch as done.
    """

    def __init__(self, state: Any, batches_per_commit: int = 1):
        super().__init__()
        self.state = state
        self.batches_per_commit = batches_per_commit
        self._batches = self._epoch = 0

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        # Keras calls it, of all callbacks, before any on_train_begin().
        _followers(self.state).clear()

    def on_train_begin(self, logs: Any = None) -> None:
        self._batches = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._batches += 1
        if self._batches % self.batches_per_commit != 0 or not _all_go_on():
            return
        followers = _followers(self.state)
        keep_epochs = any(isinstance(one, UpdateEpochState) for one in followers)
        for one in followers:
            if keep_epochs and (self.params or {}).get("steps") == batch + 1:
                one.on_epoch_end(self._epoch)
            else:
                one.on_train_batch_end(batch)
        self.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if is_elastic():
            end_together(self.model, epoch)
        for one in _followers(self.state):
            one.on_epoch_end(epoch)
        self.commit()

    def commit(self) -> None:
        self.state.commit()


class UpdateBatchState:
    """Keeps in state.batch how many batches of the epoch have been done: 0 after an epoch.

    If fit() goes on in the middle of an epoch, its batches are counted on from the state's number.
    """

    def __init__(self, state: Any):
        super().__init__()
        self.state = state
        self._done = 0  # before this fit()

    def on_train_begin(self, logs: Any = None) -> None:
        self._done = self.state.batch
        _followers(self.state).append(self)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.state.batch = self._done + batch + 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.batch = self._done = 0


class UpdateEpochState:
    """Keeps in state.epoch how many epochs have been done, of all calls of fit(), whatever their initial_epoch is."""

    def __init__(self, state: Any):
        super().__init__()
        self.state = state
        self._done, self._first = state.epoch, None  # before this fit(), and Keras's number of its first one

    def on_train_begin(self, logs: Any = None) -> None:
        self._done, self._first = self.state.epoch, None
        _followers(self.state).append(self)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if self._first is None:
            self._first = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        pass

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.epoch = self._done + epoch - (self._first or 0) + 1
