"""Tensors of all ranks combined, on every rank."""
from __future__ import annotations

from typing import Any, Sequence

import torch

from ddl._horovod import ProcessSet, _Op, global_process_set, named, op_of, opened, synchronize
from ddl._library import lib
from ddl.torch._tensors import TYPES, address, checked, submit
from ddl.torch.compression import Compression


def _handle(tensor: torch.Tensor, output: torch.Tensor, name: bytes, op: _Op, **options: Any) -> Any:
    places = address(tensor), address(output)
    count, dtype = tensor.numel(), TYPES[tensor.dtype]
    return submit(lib.ddl_allreduce_async, name, tensor, *places, count, dtype, op.number, **options)


def _reduce(
    tensor: torch.Tensor, output: torch.Tensor, name: str | None,
    op: _Op, prescale: float, postscale: float, process_set: ProcessSet,
) -> int:
    options = dict(prescale=prescale, postscale=postscale, process_set=process_set)
    checked(tensor)
    whole = named("allreduce", name, process_set)
    handle = _handle(tensor, output, whole, op, **options)
    return opened(handle, lambda: output, (tensor, output), whole, process_set)


def allreduce_async(
    tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
) -> int:
    """Submits a tensor for an allreduce; synchronize() gives a new tensor."""
    op = op_of(average, op)
    return _reduce(tensor, torch.empty_like(checked(tensor)), name, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(
    tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
) -> int:
    """The same in place."""
    return _reduce(tensor, tensor, name, op_of(average, op), prescale_factor, postscale_factor, process_set)


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, *how):
        ctx.how = how
        return synchronize(_reduce(tensor, torch.empty_like(checked(tensor)), name, *how))

    @staticmethod
    def backward(ctx, gradient):
        return _Allreduce.apply(gradient.contiguous(), None, *ctx.how), None, None, None, None, None


def allreduce(
    tensor,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """The ranks' tensors combined, in a new tensor. With a gradient: that is combined alike."""
    op = op_of(average, op)
    small, kept = compression.compress(checked(tensor))
    result = _Allreduce.apply(small, name, op, prescale_factor, postscale_factor, process_set)
    return compression.decompress(result, kept)


def allreduce_(
    tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
):
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


def _grouped(
    tensors: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], name: str | None,
    op: _Op, prescale: float, postscale: float, process_set: ProcessSet,
) -> int:
    if not tensors:
        raise ValueError("a group needs at least one tensor")
    whole = named("grouped_allreduce", name, process_set)
    for tensor in tensors:
        checked(tensor)
    options = dict(prescale=prescale, postscale=postscale, process_set=process_set)
    options.update(group=whole.decode(), group_size=len(tensors))
    handles = []
    for i, (tensor, output) in enumerate(zip(tensors, outputs)):
        handles.append(_handle(tensor, output, whole + f".{i}".encode(), op, **options))
    return opened(handles, lambda: list(outputs), (tensors, outputs), whole, process_set)


def grouped_allreduce_async(
    tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
) -> int:
    """Submits several tensors, which are processed together; synchronize() gives a list."""
    outputs = [torch.empty_like(checked(tensor)) for tensor in tensors]
    return _grouped(tensors, outputs, name, op_of(average, op), prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async_(
    tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
) -> int:
    return _grouped(tensors, tensors, name, op_of(average, op), prescale_factor, postscale_factor, process_set)


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale, postscale, process_set, *tensors):
        ctx.arguments = (op, prescale, postscale, process_set)
        outputs = [torch.empty_like(checked(tensor)) for tensor in tensors]
        return tuple(synchronize(_grouped(tensors, outputs, name, op, prescale, postscale, process_set)))

    @staticmethod
    def backward(ctx, *gradients):
        whole = [gradient.contiguous() for gradient in gradients]
        return (None, None, None, None, None, *_GroupedAllreduce.apply(None, *ctx.arguments, *whole))


def grouped_allreduce(
    tensors,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    op = op_of(average, op)
    small, kept = zip(*(compression.compress(tensor) for tensor in tensors))
    results = _GroupedAllreduce.apply(name, op, prescale_factor, postscale_factor, process_set, *small)
    return [compression.decompress(result, one) for result, one in zip(results, kept)]


def grouped_allreduce_(
    tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set
):
    return synchronize(
        grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set)
    )
