"""States of PyTorch for training whose ranks go on when one is lost: Horovod's names, run by libddl.

    import torch
    import ddl.torch as hvd

    @hvd.elastic.run
    def train(state):
        while state.epoch < 10:
            common = state.sampler.common_batches(32)
            for batch, (inputs, targets) in enumerate(loader):   # a DataLoader of the sampler, with batch_size=32
                ...
                state.sampler.record_batch(batch, len(inputs))
                if batch % 10 == 9 and batch < common:
                    state.commit()
            hvd.join()                                           # a rank may have one batch less than another
            state.epoch += 1
            state.sampler.set_epoch(state.epoch)
            state.commit()

    hvd.init()
    train(hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0))

``ddl.elastic`` says what run() and the functions of a state do.
"""
from __future__ import annotations

import copy
from itertools import zip_longest
from typing import Any, Sequence

import torch

import ddl
from ddl._objects import broadcast_object, numbers
from ddl._training import run_elastic as run
from ddl.elastic import HostsUpdatedInterrupt, ObjectState, State, sync_from
from ddl.torch._optimizer_state import _description, _parameters, _take, broadcast_optimizer_state
from ddl.torch._parameters import broadcast_parameters, described
from ddl.torch._slices import options_of
from ddl.torch.sharded_optimizer import _ShardedOptimizer
from ddl.torch.training import DistributedSampler

__all__ = [
    "ElasticSampler", "GradScalerStateHandler", "HostsUpdatedInterrupt", "LRSchedulerStateHandler",
    "ModelStateHandler", "ObjectState", "OptimizerStateHandler", "SamplerStateHandler", "ShardedOptimizerStateHandler",
    "State", "StateHandler", "TorchState", "get_handler_registry", "run", "set_handler_registry",
]


class ElasticSampler(DistributedSampler):
    """The numbers of this rank's samples: of an epoch, each sample is trained on once, whatever ranks are lost or join.

    Nothing is repeated or omitted to make the ranks' shares equal, so a rank may have one sample less than another one:
    end the epoch with hvd.join(). Give the sampler to a TorchState, record each batch that was trained on, and call
    set_epoch() at the end of an epoch, which begins the next one.

    A commit keeps how much of the epoch is done. If a rank is lost, this goes back to the last commit together with the
    model, and what is left is divided among the ranks that there are: iterate anew in each call of the training
    function. Batches have the same size on all ranks, but for the last one of an epoch, which may be shorter on some
    ranks, or absent. Then no rank may commit before all have ended the epoch: common_batches() says after how many
    batches all ranks may.

    dataset: anything with a length. shuffle: in another order in each epoch, the same for the same seed.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0):
        super().__init__(dataset, shuffle, seed)
        self.dataset = dataset

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Says that each rank has trained on a batch. batch_size: that of a whole one will do for the last, too."""
        self.record(batch_size)

    def record_indices(self, indices: Sequence[int]) -> None:
        """Says that each rank has trained on the next samples of its share, of which these are this rank's."""
        self.record(len(indices))

    def reset(self) -> None:
        """Divides what is left of the epoch among the ranks that there are now."""
        self._begin = self._done


class StateHandler:
    """Saves, restores and shares a value of a TorchState. value: what the state's attribute is."""

    _spare: Any = None  # a copy that is not needed any more
    _is_lent = False  # the copy is somebody else's, too

    def __init__(self, value: Any):
        self.value = value

    def save(self) -> None:
        """Copies the value to the host's memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Makes the value what was copied. The process may have left the job."""
        raise NotImplementedError

    def sync(self, root_rank: int = 0) -> None:
        """Gives all ranks the value of root_rank, and saves it. Collective."""
        raise NotImplementedError

    def saved(self) -> Any:
        """What save() has copied last, for a file: pickle must be able to write it, and nothing changes it later."""
        self._is_lent = True
        return {name: one for name, one in vars(self).items() if name not in ("value", "_spare", "_is_lent")}

    def _spare_next(self, former: Any) -> None:
        """A copy has taken the place of this one, which may be written over, unless saved() has given it away."""
        self._spare = None if self._is_lent else former
        self._is_lent = False

    def take(self, saved: Any) -> None:
        """Makes the value, and its copy, what saved() was in an earlier job."""
        vars(self).update(saved)
        self.restore()

    def reset(self) -> None:
        """After the process has joined a generation of the job, and after the callbacks."""

    def layout(self) -> list[str]:
        """What all ranks' values have in common, line by line. What changes in training is not in it."""
        return [f"the class {type(self.value).__qualname__}"]

    def set_value(self, value: Any) -> None:
        """Takes another value, and saves it."""
        self.value = value
        self.save()


def _on_host(value: Any, spare: Any = None) -> Any:
    """A copy, in the memory of another one that is not needed any more, if it fits: new memory costs several times what
    the copy does, because the kernel has to clear it."""
    if not isinstance(value, torch.Tensor):
        return copy.deepcopy(value)
    fits = isinstance(spare, torch.Tensor) and value.layout is spare.layout is torch.strided
    if fits and (value.shape, value.dtype) == (spare.shape, spare.dtype) and not spare.is_inference():
        return spare.copy_(value.detach())
    return value.detach().to("cpu", copy=True)


class ModelStateHandler(StateHandler):
    """A module: all that is in its state_dict()."""

    _saved: dict[str, Any] | None = None

    def save(self) -> None:
        state = self.value.state_dict()
        spare = self._spare or {}
        copies = {name: _on_host(one, spare.get(name)) for name, one in state.items()}
        self._spare_next(self._saved)
        self._saved = copies

    def restore(self) -> None:
        # What is no tensor may be kept by the module.
        state = self._saved.items()
        self.value.load_state_dict(
            {name: one if isinstance(one, torch.Tensor) else copy.deepcopy(one) for name, one in state}
        )

    def sync(self, root_rank: int = 0) -> None:
        state = self.value.state_dict()
        broadcast_parameters(state, root_rank)
        others = {name: one for name, one in state.items() if not isinstance(one, torch.Tensor)}
        if others:
            self.value.load_state_dict({**state, **broadcast_object(others, root_rank)})
        self.save()

    def layout(self) -> list[str]:
        return super().layout() + [
            f"{name}: {described(one) if isinstance(one, torch.Tensor) else 'no tensor'}"
            for name, one in self.value.state_dict().items()
        ]


class OptimizerStateHandler(StateHandler):
    """An optimizer, also a DistributedOptimizer: its state, and options such as the learning rate."""

    _tensors: list[torch.Tensor] | None = None

    def save(self) -> None:
        tensors: list[torch.Tensor] = []
        description = copy.deepcopy(_description(self.value, None, tensors))
        spare = self._spare or []
        copies = [_on_host(one, other) for one, other in zip_longest(tensors, spare[: len(tensors)])]
        self._spare_next(self._tensors)
        self._tensors, self._description = copies, description

    def restore(self) -> None:
        self._drop_gradients()
        places: list[torch.Tensor] = []
        _take(self.value, copy.deepcopy(self._description), places)
        for place, saved in zip(places, self._tensors):
            place.data.copy_(saved)

    def sync(self, root_rank: int = 0) -> None:
        broadcast_optimizer_state(self.value, root_rank)
        self.save()

    def reset(self) -> None:
        self._drop_gradients()
        gradients = getattr(self.value, "_ddl", None)
        if gradients is not None:
            gradients.begin_generation()

    def layout(self) -> list[str]:
        return super().layout() + [
            f"parameter {j} of group {i}: {described(one)}"
            for i, group in enumerate(self.value.param_groups)
            for j, one in enumerate(group["params"])
        ]

    def _drop_gradients(self) -> None:
        """Those of a step that has failed, and of passes before a step. New ranks have none, either."""
        for parameter in _parameters(self.value):
            parameter.grad = None
        gradients = getattr(self.value, "_ddl", None)
        if gradients is not None:
            gradients.drop_open()


class ShardedOptimizerStateHandler(OptimizerStateHandler):
    """A ShardedOptimizer: its options. A TorchState has each rank's part of its state as a Shard."""

    def save(self) -> None:
        self._options = copy.deepcopy([options_of(group) for group in self.value.param_groups])

    def restore(self) -> None:
        self._drop_gradients()
        for group, options in zip(self.value.param_groups, copy.deepcopy(self._options)):
            group.update(options)

    def sync(self, root_rank: int = 0) -> None:
        own = [options_of(group) for group in self.value.param_groups]
        for group, options in zip(self.value.param_groups, broadcast_object(own, root_rank)):
            group.update(options)
        self.save()


class _DictStateHandler(StateHandler):
    """A small value: what is in its state_dict()."""

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        self.value.load_state_dict(copy.deepcopy(self._saved))

    def sync(self, root_rank: int = 0) -> None:
        self.value.load_state_dict(broadcast_object(self.value.state_dict(), root_rank))
        self.save()


class LRSchedulerStateHandler(_DictStateHandler):
    """A scheduler of learning rates. Those of the optimizer belong to the optimizer's handler."""


class GradScalerStateHandler(_DictStateHandler):
    """A scaler of losses for 16-bit floats."""

    def restore(self) -> None:
        super().restore()
        # Which gradients a step that has failed had unscaled: PyTorch would refuse the next unscale_().
        getattr(self.value, "_per_optimizer_states", {}).clear()


class SamplerStateHandler(_DictStateHandler):
    """A sampler: its epoch, and how much of it is done."""

    def reset(self) -> None:
        self.value.load_state_dict(self.value.state_dict())

    def layout(self) -> list[str]:
        one = self.value
        return super().layout() + [f"{one._length} samples, shuffle={one._shuffle}, seed={one._seed}"]


_registry: list[tuple[type, type]] = [
    (torch.nn.Module, ModelStateHandler),
    (_ShardedOptimizer, ShardedOptimizerStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (torch.optim.lr_scheduler.ReduceLROnPlateau, LRSchedulerStateHandler),
    # PyTorch 2 has given the class another name.
    (getattr(torch.optim.lr_scheduler, "LRScheduler", torch.optim.lr_scheduler._LRScheduler), LRSchedulerStateHandler),
    (torch.cuda.amp.GradScaler, GradScalerStateHandler),
    (DistributedSampler, SamplerStateHandler),
]


def get_handler_registry() -> list[tuple[type, type]]:
    """Types of values, and the handlers that a TorchState makes of them: the first one that fits is taken."""
    return _registry


def set_handler_registry(registry: list[tuple[type, type]]) -> None:
    """Replaces the list, for states that are made from now on. A program's handlers derive from StateHandler."""
    global _registry
    _registry = registry


def _handler_of(value: Any) -> StateHandler | None:
    return next((handler(value) for kind, handler in _registry if isinstance(value, kind)), None)


class TorchState(ObjectState):
    """A model, an optimizer, and values by names, such as ``sampler=sampler, epoch=0``, which become attributes.

    Modules, optimizers, samplers, schedulers of learning rates and scalers of losses, by any name, have handlers: their
    copies lie in the host's memory, and restore() and sync() change them in place. Copies of other values are deep. The
    state is saved when it is made, and a value with a handler when it is assigned to an attribute.
    """

    def __init__(
        self, model: torch.nn.Module | None = None, optimizer: torch.optim.Optimizer | None = None, **values: Any
    ):
        values = {"model": model, "optimizer": optimizer, **values}
        for name, value in list(values.items()):
            if isinstance(value, _ShardedOptimizer):
                values[f"{name}_shard"] = value.shard()
        handlers = {name: _handler_of(value) for name, value in values.items()}
        self._handlers = {name: handler for name, handler in handlers.items() if handler is not None}
        vars(self).update(values)
        super().__init__(**{name: value for name, value in values.items() if name not in self._handlers})

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self).get("_handlers", ()):
            self._handlers[name].set_value(value)
        elif name in vars(self).get("_names", ()):
            handler = _handler_of(value)
            if handler is not None:
                handler.save()
                self._handlers[name] = handler
                self._names.remove(name)
                del self._saved[name]
        super().__setattr__(name, value)

    def save(self) -> None:
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self) -> None:
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self, root_rank: int = 0) -> None:
        for _, handler in sorted(self._handlers.items()):
            sync_from(handler, root_rank)
        super().sync(root_rank)

    def saved(self) -> Any:
        return super().saved(), {name: handler.saved() for name, handler in self._handlers.items()}

    def take(self, saved: Any) -> None:
        super().take(saved[0])
        for name, handler in self._handlers.items():
            handler.take(saved[1][name])

    def on_reset(self) -> None:
        super().on_reset()
        for handler in self._handlers.values():  # after the callbacks, which may make process sets
            handler.reset()

    def _layout(self) -> list[str]:
        return super()._layout() + [
            f"{line} in {name}" for name, handler in sorted(self._handlers.items()) for line in handler.layout()
        ]

    def _agree(self) -> None:
        # A rank that has had no last batch has not recorded it.
        samplers = [
            handler.value
            for _, handler in sorted(self._handlers.items())
            if isinstance(handler.value, DistributedSampler)
        ]
        if not samplers:
            return
        done = numbers(len(samplers))
        for i, sampler in enumerate(samplers):
            done[i] = sampler._done
        ddl.allreduce(done, ddl.MAX, out=done)
        for sampler, most in zip(samplers, done):
            sampler._done = most
