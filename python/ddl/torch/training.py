"""What a training program needs beside an optimizer: samples for each rank, learning rates, means, checkpoints."""
from __future__ import annotations

import os
import tempfile
from typing import Any, Callable, Iterator, Mapping

import torch

import ddl
from ddl._horovod import broadcast_object
from ddl._training import average_metrics, warmup  # names of this module, too
from ddl.torch._optimizer_state import broadcast_optimizer_state
from ddl.torch._parameters import broadcast_parameters


class DistributedSampler(torch.utils.data.Sampler):
    """The numbers of this rank's samples: of an epoch, each sample is one rank's, once.

    Nothing is repeated to make the ranks' shares equal, so a rank may have one sample less than another one: end the
    epoch with hvd.join(), or drop the last batch. After state_dict() and load_state_dict(), an epoch goes on where it
    was, also with another number of ranks. In each iteration come the samples that have not been recorded before it.

    dataset: anything with a length. shuffle: in another order in each epoch, the same for the same seed.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0):
        self._length = len(dataset)
        self._shuffle = shuffle
        self._seed = seed
        self._epoch = 0
        self._done = 0  # samples of the epoch that all ranks together have had
        self._begin = 0  # as many when the iteration began

    @property
    def epoch(self) -> int:
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch."""
        self._epoch, self._done, self._begin = epoch, 0, 0

    def record(self, samples: int) -> None:
        """Says that every rank has trained on so many samples more."""
        self._done = min(self._done + samples * ddl.size(), self._length)

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self._epoch, "done": self._done}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        self._epoch, self._done = state["epoch"], state["done"]
        self._begin = self._done

    def common_batches(self, batch_size: int) -> int:
        """How many whole batches of this size every rank has in an iteration that begins now. A rank may have one more,
        or a shorter one."""
        return (self._length - self._done) // (ddl.size() * batch_size)

    def __len__(self) -> int:
        """How many samples this rank has in the iteration."""
        return len(range(self._begin + ddl.rank(), self._length, ddl.size()))

    def __iter__(self) -> Iterator[int]:
        self._begin = self._done
        if self._shuffle:
            generator = torch.Generator()
            generator.manual_seed(self._seed * 1_000_003 + self._epoch)
            order = torch.randperm(self._length, generator=generator).tolist()
        else:
            order = list(range(self._length))
        return iter(order[self._begin + ddl.rank() :: ddl.size()])


class LearningRateSchedule:
    """Multiplies the learning rates that the optimizer has now by multiplier(epoch), where epoch may be a fraction.

    momentum_correction: after a change, momentum is scaled with the rate for one step. This is for optimizers whose
    velocity has the rate in it, v = m v + lr g (Goyal et al. 2017, remark 2). PyTorch's SGD, u = m u + g, needs none.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, multiplier: Callable[[float], float], momentum_correction: bool = False
    ):
        self._optimizer = optimizer
        self._multiplier = multiplier
        self._corrects = momentum_correction
        self._rates = [group["lr"] for group in optimizer.param_groups]
        self._momenta: list[float] | None = None

    def step(self, epoch: float) -> None:
        """Before a batch. epoch: 2.5 is in the middle of the third one."""
        groups = self._optimizer.param_groups
        if self._momenta is not None:
            for group, momentum in zip(groups, self._momenta):
                group["momentum"] = momentum
            self._momenta = None
        factor = self._multiplier(epoch)
        rates = [rate * factor for rate in self._rates]
        changes = any(rate != group["lr"] for rate, group in zip(rates, groups))
        if changes and self._corrects and all(group.get("momentum") and group["lr"] for group in groups):
            self._momenta = [group["momentum"] for group in groups]
            for group, rate in zip(groups, rates):
                group["momentum"] *= rate / group["lr"]
        for group, rate in zip(groups, rates):
            group["lr"] = rate


def start_alike(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None, root_rank: int = 0) -> None:
    """All ranks begin with root's parameters, buffers, and state of the optimizer."""
    broadcast_parameters(model.state_dict(), root_rank)
    if optimizer is not None:
        broadcast_optimizer_state(optimizer, root_rank)


def save_checkpoint(path: str, state: Any) -> None:
    """Rank 0 writes the state; the others do nothing. The file is complete, or the old one stays."""
    if ddl.rank() != 0:
        return
    folder = os.path.dirname(os.path.abspath(path))
    number, name = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path) + ".")
    try:
        with os.fdopen(number, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def load_checkpoint(path: str) -> Any:
    """The state that rank 0 reads, on every rank; None, on every rank: there is no such file. Collective."""
    state, problem = None, None
    if ddl.rank() == 0 and os.path.exists(path):
        try:
            state = torch.load(path, map_location="cpu")
        except Exception as error:  # the other ranks wait to hear of it
            problem = f"{path} is no checkpoint that PyTorch can read: {error}"
    state, problem = broadcast_object((state, problem))
    if problem is not None:
        raise RuntimeError(problem)
    return state
