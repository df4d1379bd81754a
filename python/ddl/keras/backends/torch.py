"""Keras 3 with PyTorch."""
from __future__ import annotations

from typing import Any, Callable

import numpy
import torch

from ddl.keras._gradients import Options
from ddl.keras.backends import _grouped
from ddl.torch.compression import Compression
from ddl.torch.mpi_ops import grouped_allreduce_async_, synchronize


def _start(gradients: list[Any], name: str, op: Any, prescale: float, postscale: float, process_set: Any) -> Any:
    # In place: they are the tensors' own, or compressed ones, which nobody else has.
    whole = [gradient.detach().contiguous() for gradient in gradients]
    number = grouped_allreduce_async_(
        whole, name=name, op=op, prescale_factor=prescale, postscale_factor=postscale, process_set=process_set
    )
    return lambda: synchronize(number)


def reduction(options: Options) -> _grouped.Reduction:
    return _grouped.Reduction(options, Compression.none, _start)


def when(holds: Any, function: Callable[[list[Any]], list[Any]], gradients: list[Any]) -> list[Any]:
    return function(gradients) if bool(holds) else gradients


def tensor(array: numpy.ndarray) -> torch.Tensor:
    return torch.from_numpy(numpy.array(array))
