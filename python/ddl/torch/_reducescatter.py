"""Tensors of all ranks combined, of which each rank gets some rows."""
from __future__ import annotations

import torch

from ddl._library import ffi, lib
from ddl._tensors import hand_over
from ddl.torch._compression import Compression
from ddl.torch._handles import (
    TYPES,
    Average,
    Sum,
    address,
    async_options,
    checked,
    named,
    opened,
    rows_of,
    synchronize,
    together,
)
from ddl.torch._moves import allgather_async
from ddl.torch._sets import global_process_set, set_of


def reducescatter_async(
    tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0
) -> int:
    """Hands over a tensor; synchronize() gives this rank's rows of the combination. The first ranks get more."""
    if op not in (Average, Sum):
        raise ValueError(f"a reducescatter is by Average or Sum, not {op}")
    rows, chosen = rows_of(tensor), set_of(process_set)
    ranks, own = chosen.size or 1, chosen.rank or 0
    share, more = divmod(rows.shape[0], ranks)
    parts = [share + (1 if rank < more else 0) for rank in range(ranks)]
    row = rows.numel() // rows.shape[0] if rows.shape[0] else 0
    output = torch.empty((parts[own], *rows.shape[1:]), dtype=rows.dtype, device=rows.device)
    options = async_options(tensor, process_set, prescale_factor, postscale_factor)
    handle = hand_over(
        lib.ddl_reduce_scatter_async,
        named("reducescatter", name, process_set),
        address(rows),
        address(output),
        ffi.new("uint64_t[]", [part * row for part in parts]),
        TYPES[rows.dtype],
        op.number,
        options.pointer,
    )
    return opened(handle, lambda: output, (rows, output))


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale, postscale):
        ctx.arguments = (op, process_set, prescale, postscale)
        return synchronize(reducescatter_async(tensor, name, op, process_set, prescale, postscale))

    @staticmethod
    def backward(ctx, gradient):
        op, process_set, prescale, postscale = ctx.arguments
        gathered = synchronize(allgather_async(gradient.contiguous(), None, process_set))
        scale = prescale * postscale * (1.0 if op is Average else float(process_set.size()))
        return gathered * scale if scale != 1.0 else gathered, None, None, None, None, None


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
    whole = named("grouped_reducescatter", name, process_set).decode()
    return together(
        [
            reducescatter_async(tensor, f"{whole}.{i}", op, process_set, prescale_factor, postscale_factor)
            for i, tensor in enumerate(tensors)
        ]
    )


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
    results = synchronize(
        grouped_reducescatter_async(small, name, op, process_set, prescale_factor, postscale_factor)
    )
    return [compression.decompress(result, one) for result, one in zip(results, kept)]
