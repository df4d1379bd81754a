"""What training programs of every framework need: means, and learning rates that grow."""
from __future__ import annotations

from array import array
from typing import Callable, Mapping

from ddl._context import AVERAGE, size as job_size
from ddl._tensors import allreduce_async


def average_metrics(metrics: Mapping[str, float]) -> dict[str, float]:
    """The mean of each metric over the ranks, which all give the same names."""
    names = sorted(metrics)
    values = memoryview(array("d", (float(metrics[name]) for name in names)))
    if names:
        name = "allreduce.metrics." + ",".join(names)
        allreduce_async(values, name, AVERAGE, out=values, zeros_if_joined=True).wait()
    return dict(zip(names, values))


def warmup(epochs: float = 5.0, size: int | None = None) -> Callable[[float], float]:
    """A multiplier for LearningRateSchedule: from 1/size to 1 in this number of epochs, for an optimizer whose rate is
    size times that of one rank (Goyal et al. 2017). size: None: the number of ranks."""
    ranks = job_size() if size is None else size

    def multiplier(epoch: float) -> float:
        return 1.0 if epoch >= epochs else (1.0 + epoch / epochs * (ranks - 1)) / ranks

    return multiplier
