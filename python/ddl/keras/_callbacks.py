"""What the callbacks do; ddl.keras.callbacks and ddl.tensorflow.keras.callbacks make classes of their Keras of it."""
from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy

import ddl
from ddl._context import generation
from ddl._horovod import allgather_object, set_of
from ddl._training import warmup
from ddl.errors import Mismatch
from ddl.keras._checks import check_strategy
from ddl.keras._kinds import build, rate_of, value_of, variables_of, velocities_of
from ddl.keras._variables import broadcast_variables
from ddl.keras.optimizer import gradients_of


def _synchronized(model: Any) -> Any:
    """The model, whose variables hold their values: on JAX they lie elsewhere between the batches of an epoch."""
    getattr(model, "jax_state_sync", lambda: None)()
    return model


def end_together(model: Any, epoch: int) -> None:
    """At the end of an epoch: an error on all ranks if they have taken different numbers of steps. Collective."""
    optimizer = getattr(model, "optimizer", None)
    gradients = None if optimizer is None else gradients_of(optimizer)
    chosen = None if gradients is None else gradients.options.process_set
    if chosen is None or not chosen.included() or chosen.size() == 1:
        return
    own = int(value_of(_synchronized(model).optimizer.iterations))
    ddl.join(set_of(chosen))  # a rank with more steps gets to its end: the others' gradients are zeros
    taken = allgather_object(own, process_set=chosen)
    least, most = (taken.index(choose(taken)) for choose in (min, max))
    if taken[least] != taken[most]:
        raise RuntimeError(
            f"after epoch {epoch + 1}, the optimizer has taken {taken[least]} steps on rank {chosen.ranks[least]} "
            f"and {taken[most]} on rank {chosen.ranks[most]}; give all ranks as many batches, and let no callback, "
            "such as TerminateOnNaN, stop a rank in the middle of an epoch"
        )


class EndsTogether:
    """Ranks say after each epoch how many steps they have taken, and before the next one, and at the end, whether they
    go on. One that has stopped by itself would leave the others waiting for its gradients."""

    _has_begun = False

    def on_train_begin(self, logs: Any = None) -> None:
        self._has_begun = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if self._has_begun:
            self._say(True, epoch)
        self._has_begun, self._next = True, epoch + 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        end_together(self.model, epoch)

    def on_train_end(self, logs: Any = None) -> None:
        if self._has_begun:
            self._say(False, self._next)

    def _say(self, goes_on: bool, epoch: int) -> None:
        answers = allgather_object((goes_on, epoch))
        if None in answers:
            raise RuntimeError(
                f"rank {answers.index(None)} is at the end of an epoch, and rank {ddl.rank()} has gone on; give "
                "MetricAverageCallback and BroadcastGlobalVariablesCallback to all ranks, or to none"
            )
        go, end = ([rank for rank, one in enumerate(answers) if one[0] is way] for way in (True, False))
        if go and end:
            raise RuntimeError(
                f"rank {end[0]} has ended training after {answers[end[0]][1]} epochs, and rank {go[0]} goes on; "
                "give callbacks that stop training, such as EarlyStopping, to all ranks, after MetricAverageCallback"
            )


class BroadcastGlobalVariables(EndsTogether):
    """All ranks begin with root's weights and state of the optimizer: before the first batch, or after it if the model
    is built by it. local_variables: keep each rank's own values. device: accepted, and not used."""

    def __init__(self, root_rank: int, device: str = "", local_variables: Any = None):
        super().__init__()
        self._supports_tf_logs = True  # it reads no metrics: Keras 2 need not make numbers of them at each batch
        self.root_rank = root_rank
        self.broadcast_done = False
        self._generation: int | None = None  # in which it was done
        self._local: dict[int, Any] = {}
        for variable in [] if local_variables is None else list(local_variables):
            if not hasattr(variable, "assign"):
                raise ValueError(f"local_variables is a list of variables, and has a {type(variable).__name__}")
            self.register_local_var(variable)

    def register_local_var(self, variable: Any) -> None:
        """The variable keeps each rank's own value."""
        self._local[id(variable)] = variable

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        if self._generation not in (None, generation()):  # of an elastic job: ranks that are new wait for it
            self.broadcast_done = False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if not self.broadcast_done and self.model.built:
            self._broadcast()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if not self.broadcast_done:  # the first batch has built the model
            self._broadcast()

    def _broadcast(self) -> None:
        model = _synchronized(self.model)
        check_strategy(getattr(model, "distribute_strategy", None))
        optimizer = model.optimizer
        build(optimizer, model.trainable_variables)
        variables = [variable for variable in model.weights if id(variable) not in self._local]
        broadcast_variables(variables + variables_of(optimizer), self.root_rank)
        self.broadcast_done, self._generation = True, generation()


class MetricAverage(EndsTogether):
    """At the end of each epoch, metrics become their means over the ranks, for the callbacks behind it and for the
    history. If a callback before it has stopped training on a rank, training stops on all."""

    def __init__(self, device: str = ""):
        super().__init__()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        super().on_epoch_end(epoch, logs)
        logs = {} if logs is None else logs
        own = {name: numpy.asarray(value, dtype=numpy.float64) for name, value in logs.items()}
        stops = bool(getattr(self.model, "stop_training", False))
        said = allgather_object((own, stops, self._rate()))
        everyone = {rank: one for rank, one in enumerate(said) if one is not None}
        _check_names({rank: metrics for rank, (metrics, _, _) in everyone.items()})
        _check_rates({rank: rate for rank, (_, _, rate) in everyone.items()})
        for name in sorted(own):
            mean = sum(metrics[name] for metrics, _, _ in everyone.values()) / len(everyone)
            logs[name] = mean if mean.ndim else float(mean)
        if any(stops for _, stops, _ in everyone.values()):
            self.model.stop_training = True

    def _rate(self) -> float | None:
        """The learning rate, which is to be every rank's."""
        optimizer = getattr(self.model, "optimizer", None)
        if not hasattr(optimizer, "_ddl"):
            return None
        return rate_of(_synchronized(self.model).optimizer)


def _check_names(metrics: Mapping[int, Mapping[str, Any]]) -> None:
    names = sorted({name for one in metrics.values() for name in one})
    for name in names:
        without = [rank for rank, one in metrics.items() if name not in one]
        if without:
            having = next(rank for rank, one in metrics.items() if name in one)
            raise Mismatch(
                f'metric "{name}" is there on rank {having} and not on rank {without[0]}; '
                "MetricAverageCallback needs the same metrics, and validation data, on all ranks"
            )


def _check_rates(rates: Mapping[int, float | None]) -> None:
    first = min(rates)
    for rank, rate in rates.items():
        if rate != rates[first]:
            raise Mismatch(
                f"the learning rate is {rates[first]:g} on rank {first} and {rate:g} on rank {rank}; put callbacks "
                "that change it by a metric, such as ReduceLROnPlateau, after MetricAverageCallback"
            )


class LearningRateSchedule:
    """The learning rate is initial_lr times multiplier(epoch), from start_epoch until before end_epoch.

    multiplier: a function, or a number of which multiplier ** (epoch - start_epoch) is taken. staircase: at the first
    batch of each epoch; else at every batch, with epochs in fractions. lr: an old name of initial_lr.
    """

    def __init__(
        self, initial_lr: float | None = None, multiplier: Any = None, start_epoch: int = 0,
        end_epoch: int | None = None, staircase: bool = True, momentum_correction: bool = True,
        steps_per_epoch: int | None = None, *, lr: float | None = None,
    ):
        super().__init__()
        self._supports_tf_logs = True  # as above
        if (initial_lr is None) == (lr is None):
            raise ValueError("give the learning rate by initial_lr, or by its old name lr")
        if multiplier is None:
            raise ValueError("give a multiplier: a number, or a function of the epoch")
        self.initial_lr = lr if initial_lr is None else initial_lr
        self.multiplier: Callable[[float], float] = (
            multiplier if callable(multiplier) else lambda epoch: multiplier ** (epoch - start_epoch)
        )
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = 0

    def on_train_begin(self, logs: Any = None) -> None:
        if self.staircase or self.steps_per_epoch:
            return
        self.steps_per_epoch = (self.params or {}).get("steps")
        if not self.steps_per_epoch:
            raise ValueError("Keras does not know how many steps an epoch has; give steps_per_epoch to the callback")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.current_epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        epoch = self.current_epoch
        if epoch < self.start_epoch or (self.end_epoch is not None and epoch >= self.end_epoch):
            return
        if not self.staircase:
            self._set_rate(self.initial_lr * self.multiplier(epoch + batch / self.steps_per_epoch))
        elif batch == 0:
            self._set_rate(self.initial_lr * self.multiplier(epoch))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["lr"] = rate_of(_synchronized(self.model).optimizer)

    def _set_rate(self, rate: float) -> None:
        """With momentum, v = m v + lr g is scaled as the rate is: Goyal et al. 2017, remark 2. Keras keeps momentum as
        a constant of the compiled step, so the velocities are scaled in its place, once."""
        optimizer = _synchronized(self.model).optimizer
        before = rate_of(optimizer)
        if rate == before:
            return
        optimizer.learning_rate = rate
        if self.momentum_correction and before > 0:
            for velocity in velocities_of(optimizer):
                velocity.assign(value_of(velocity) * numpy.asarray(rate / before, dtype=numpy.float32))


class LearningRateWarmup(LearningRateSchedule):
    """The learning rate grows from initial_lr / size() to initial_lr in warmup_epochs, batch by batch (Goyal et al.
    2017). lr: an old name of initial_lr."""

    def __init__(
        self, initial_lr: float | None = None, warmup_epochs: float = 5, momentum_correction: bool = True,
        steps_per_epoch: int | None = None, verbose: int = 0, *, lr: float | None = None,
    ):
        grown = warmup(warmup_epochs)
        # An epoch's last batch has the rate of its end.
        super().__init__(
            initial_lr, lambda epoch: grown(epoch + 1 / self.steps_per_epoch), 0, warmup_epochs, False,
            momentum_correction, steps_per_epoch, lr=lr,
        )
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        super().on_epoch_end(epoch, logs)
        if self.verbose > 0 and epoch == self.end_epoch - 1 and ddl.rank() == 0:
            rate = rate_of(self.model.optimizer)
            print(f"\nEpoch {epoch + 1}: the learning rate has grown to {rate:g}.", flush=True)


class BestModel:
    """A ModelCheckpoint of the best model. filepath: may be set later, before training."""

    def __init__(
        self, monitor: str = "val_loss", verbose: int = 0, save_weights_only: bool = False, mode: str = "auto",
        save_freq: Any = "epoch", filepath: Any = None,
    ):
        # Keras asks for a name with the right ending at once.
        name = "best_model" + (".weights.h5" if save_weights_only else ".keras")
        super().__init__(
            name if filepath is None else filepath, monitor=monitor, verbose=verbose, save_best_only=True,
            save_weights_only=save_weights_only, mode=mode, save_freq=save_freq,
        )
