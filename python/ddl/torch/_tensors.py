"""Tensors of PyTorch that libddl takes."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import torch

from ddl import _horovod, _tensors
from ddl._buffers import DTYPES
from ddl._horovod import ProcessSet, set_of
from ddl._library import NULL, ffi

# Horovod's types, bfloat16, and, since PyTorch 2.1, floats of 8 bits. Horovod's only unsigned integers are uint8.
TYPES = {
    getattr(torch, name): number
    for name, number in DTYPES.items()
    if hasattr(torch, name) and name not in ("uint16", "uint32", "uint64")
}


def checked(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that libddl can take, or a ValueError or TypeError."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a tensor is needed, not a {type(tensor).__name__}: torch.tensor() makes one")
    if tensor.dtype not in TYPES or tensor.is_sparse:
        kind = "sparse " if tensor.is_sparse else ""
        raise ValueError(f"Tensor type {kind}{tensor.dtype} is not supported.")
    if not tensor.is_contiguous():
        raise ValueError("Tensor is required to be contiguous.")
    return tensor


def stream_of(tensor: torch.Tensor) -> Any:
    return ffi.cast("void *", torch.cuda.current_stream(tensor.device).cuda_stream) if tensor.is_cuda else NULL


def address(tensor: torch.Tensor) -> Any:
    return ffi.cast("void *", tensor.data_ptr())


def submit(
    call: Callable[..., int], name: bytes, tensor: torch.Tensor, *arguments: Any,
    process_set: ProcessSet, shape: Sequence[int] | None = None, **options: Any,
) -> Any:
    """The handle of a tensor that one of libddl's functions takes. options: prescale, postscale, group, group_size."""
    options.update(process_set=set_of(process_set), shape=tensor.shape if shape is None else shape)
    options.update(stream=stream_of(tensor), zeros_if_joined=True)
    return _tensors.submit(call, name, *arguments, **options)


def submit_move(call: Callable[..., int], name: bytes, tensor: torch.Tensor, *arguments: Any, **options: Any) -> Any:
    """The same for what Horovod does not do while a rank has joined: all but an allreduce."""
    options.update(fails_if_joined=_horovod.acts_as_horovod)
    return submit(call, name, tensor, *arguments, **options)


def rows_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, with a first dimension."""
    checked(tensor)
    return tensor if tensor.dim() else tensor.reshape(1)
