"""What training programs of every framework need: elastic training, means, and learning rates that grow."""
from __future__ import annotations

import functools
from array import array
from typing import Any, Callable, Mapping

import ddl.elastic
from ddl._context import AVERAGE, size as job_size
from ddl._horovod import init
from ddl._tensors import allreduce_async


def run_elastic(function: Callable[..., Any]) -> Callable[..., Any]:
    """ddl.elastic.run(), for functions that use Horovod's names: init() is Horovod's, too."""
    trained = ddl.elastic.run(function)

    @functools.wraps(function)
    def elastic(state: ddl.elastic.State, *arguments: Any, **named: Any) -> Any:
        init()
        return trained(state, *arguments, **named)

    return elastic


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

    def multiplier(epoch: float) -> float:
        ranks = job_size() if size is None else size  # of an elastic job: those of now
        return 1.0 if epoch >= epochs else (1.0 + epoch / epochs * (ranks - 1)) / ranks

    return multiplier
