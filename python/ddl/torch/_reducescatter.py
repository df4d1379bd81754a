"""Tensors of all ranks combined, of which each rank gets some rows."""
from __future__ import annotations

import torch

from ddl._horovod import (
    Adasum,
    Average,
    Sum,
    global_process_set,
    named,
    op_of,
    opened,
    set_of,
    synchronize,
    together,
)
from ddl._library import ffi, lib
from ddl.torch._moves import allgather_async, grouped_allgather_async
from ddl.torch._tensors import TYPES, address, checked, submit_move
from ddl.torch.compression import Compression


def _check(tensor, op) -> None:
    if op is Adasum:
        raise RuntimeError("a reducescatter is by Average or Sum: Adasum is for allreduces alone")
    if op_of(None, op) not in (Average, Sum):
        raise ValueError(f"a reducescatter is by Average or Sum, not {op}")
    if not checked(tensor).dim():
        raise ValueError("a reducescatter needs a tensor with a first dimension, whose rows the ranks share")


def reducescatter_async(
    tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0
) -> int:
    """Submits a tensor; synchronize() gives this rank's rows of the combination. The first ranks get more."""
    _check(tensor, op)
    chosen = set_of(process_set)
    ranks, own = chosen.size or 1, chosen.rank or 0
    share, more = divmod(tensor.shape[0], ranks)
    parts = [share + (1 if rank < more else 0) for rank in range(ranks)]
    row = tensor.numel() // tensor.shape[0] if tensor.shape[0] else 0
    output = torch.empty((parts[own], *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device)
    whole = named("reducescatter", name, process_set)
    counts = ffi.new("uint64_t[]", [part * row for part in parts])
    arguments = (address(tensor), address(output), counts, TYPES[tensor.dtype], op.number)
    options = dict(prescale=prescale_factor, postscale=postscale_factor, process_set=process_set)
    handle = submit_move(lib.ddl_reduce_scatter_async, whole, tensor, *arguments, **options)
    return opened(handle, lambda: output, (tensor, output), whole, process_set)


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale, postscale):
        ctx.arguments = (op, process_set, prescale, postscale)
        return synchronize(reducescatter_async(tensor, name, op, process_set, prescale, postscale))

    @staticmethod
    def backward(ctx, gradient):
        gathered = synchronize(allgather_async(gradient.contiguous(), None, ctx.arguments[1]))
        return gathered * _scale(*ctx.arguments), None, None, None, None, None


def _scale(op, process_set, prescale, postscale) -> float:
    """What a gradient is multiplied by: Horovod's is that of the sum of all ranks' losses for Sum, of the mean else."""
    return prescale * postscale * (1.0 if op is Average else float(process_set.size()))


def reducescatter(
    tensor,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    small, kept = compression.compress(checked(tensor))
    result = _Reducescatter.apply(small, name, op, process_set, prescale_factor, postscale_factor)
    return compression.decompress(result, kept)


def grouped_reducescatter_async(
    tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0
) -> int:
    for tensor in tensors:
        _check(tensor, op)  # before any is submitted
    whole = named("grouped_reducescatter", name, process_set).decode()
    return together(
        [
            reducescatter_async(tensor, f"{whole}.{i}", op, process_set, prescale_factor, postscale_factor)
            for i, tensor in enumerate(tensors)
        ]
    )


class _GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, process_set, prescale, postscale, *tensors):
        ctx.arguments = (op, process_set, prescale, postscale)
        return tuple(synchronize(grouped_reducescatter_async(tensors, name, *ctx.arguments)))

    @staticmethod
    def backward(ctx, *gradients):
        whole = [gradient.contiguous() for gradient in gradients]
        gathered = synchronize(grouped_allgather_async(whole, None, ctx.arguments[1]))
        return None, None, None, None, None, *(one * _scale(*ctx.arguments) for one in gathered)


def grouped_reducescatter(
    tensors,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    small, kept = zip(*(compression.compress(tensor) for tensor in tensors))
    results = _GroupedReducescatter.apply(name, op, process_set, prescale_factor, postscale_factor, *small)
    return [compression.decompress(result, one) for result, one in zip(results, kept)]
