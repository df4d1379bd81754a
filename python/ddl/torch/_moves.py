"""Tensors that go from ranks to ranks: allgather, broadcast, alltoall."""
from __future__ import annotations

import math
import operator
from typing import Any

import torch

import ddl
from ddl._context import context
from ddl._horovod import Average, global_process_set, named, opened, root_in, set_of, synchronize, together
from ddl._library import ffi, lib
from ddl.errors import check
from ddl.torch._allreduce import allreduce, grouped_allreduce
from ddl.torch._tensors import TYPES, address, checked, rows_of, submit_move


class _GpuMemory:
    """Memory of a GPU that libddl has allocated, by the interface that PyTorch takes."""

    def __init__(self, address: int, bytes_: int):
        data = {"shape": (bytes_,), "typestr": "|u1", "data": (address, False), "version": 3}
        self.__cuda_array_interface__ = data


def _taken(memory: Any, elements: int, like: torch.Tensor) -> torch.Tensor:
    """What libddl has allocated, as a new tensor with the rows of another one; frees it."""
    row = math.prod(like.shape[1:])
    shape = (elements // max(row, 1), *like.shape[1:])
    result = torch.empty(shape, dtype=like.dtype, device=like.device)
    size = result.numel() * result.element_size()
    if size and like.is_cuda:
        source = torch.as_tensor(_GpuMemory(int(ffi.cast("uintptr_t", memory[0])), size), device=like.device)
        result.view(-1).view(torch.uint8).copy_(source)
        torch.cuda.current_stream(like.device).synchronize()
    elif size:
        ffi.memmove(ffi.cast("char *", result.data_ptr()), memory[0], size)
    check(lib.ddl_free(context(), memory[0]))
    return result


def allgather_async(tensor, name=None, process_set=global_process_set) -> int:
    """Submits a tensor; synchronize() gives those of all ranks along the first dimension, which may differ."""
    rows = rows_of(tensor)
    memory, counts = ffi.new("void **"), ffi.new("uint64_t[]", set_of(process_set).size or 0)
    whole = named("allgather", name, process_set)
    arguments = (address(rows), rows.numel(), memory, counts, TYPES[rows.dtype])
    options = dict(process_set=process_set, shape=rows.shape[1:])
    handle = submit_move(lib.ddl_allgatherv_async, whole, tensor, *arguments, **options)
    return opened(handle, lambda: _taken(memory, sum(counts), rows), rows, whole, process_set)


def _own_rows(gradients, rows, process_set):
    """Of gathered tensors' gradients, averaged, those of this rank's rows. rows: of each tensor, how many it gave."""
    averages = grouped_allreduce([one.contiguous() for one in gradients], op=Average, process_set=process_set)
    mine = torch.tensor([[process_set.rank(), *rows]])
    everyone = synchronize(allgather_async(mine, None, process_set)).tolist()
    before = [0] * len(rows)
    for rank, *theirs in everyone:
        if rank < process_set.rank():
            before = [sum(pair) for pair in zip(before, theirs)]
    return [one.narrow(0, begin, own) for one, begin, own in zip(averages, before, rows)]


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows, ctx.process_set = rows_of(tensor).shape[0], process_set
        return synchronize(allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        return *_own_rows([gradient], [ctx.rows], ctx.process_set), None, None


def allgather(tensor, name=None, process_set=global_process_set):
    return _Allgather.apply(tensor, name, process_set)


def grouped_allgather_async(tensors, name=None, process_set=global_process_set) -> int:
    for tensor in tensors:
        checked(tensor)  # before any is submitted
    whole = named("grouped_allgather", name, process_set).decode()
    return together([allgather_async(tensor, f"{whole}.{i}", process_set) for i, tensor in enumerate(tensors)])


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        result = synchronize(grouped_allgather_async(tensors, name, process_set))
        ctx.rows, ctx.process_set = [rows_of(tensor).shape[0] for tensor in tensors], process_set
        return tuple(result)

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, *_own_rows(gradients, ctx.rows, ctx.process_set)


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    return list(_GroupedAllgather.apply(name, process_set, *tensors))


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set) -> int:
    """Submits a tensor for a broadcast in place. root_rank: its number in the job."""
    root = root_in(process_set, root_rank)
    checked(tensor)
    whole = named("broadcast", name, process_set)
    arguments = (address(tensor), tensor.numel(), TYPES[tensor.dtype], root)
    handle = submit_move(lib.ddl_broadcast_async, whole, tensor, *arguments, process_set=process_set)
    return opened(handle, lambda: tensor, tensor, whole, process_set)


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set) -> int:
    return broadcast_async_(checked(tensor).detach().clone(), root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.arguments = (root_rank, process_set)
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        root_rank, process_set = ctx.arguments
        average = allreduce(gradient.contiguous(), op=Average, process_set=process_set)
        return (average if ddl.rank() == root_rank else torch.zeros_like(average)), None, None, None


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    return _Broadcast.apply(tensor, root_rank, name, process_set)


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set) -> int:
    """Submits splits[r] rows for each rank r; None: equal parts. synchronize() gives the rows that came, and, of a
    call with splits, how many from each rank."""
    rows, ranks = rows_of(tensor), set_of(process_set).size or 0
    if splits is None:
        if rows.shape[0] % ranks:
            raise ValueError(f"{rows.shape[0]} rows are no {ranks} equal parts; give splits")
        parts = [rows.shape[0] // ranks] * ranks
    else:
        try:
            parts = [operator.index(part) for part in splits]
        except TypeError:
            raise ValueError("splits must be integers: how many rows go to each rank") from None
        if len(parts) != ranks or sum(parts) != rows.shape[0] or min(parts, default=0) < 0:
            raise ValueError(f"splits must be {ranks} numbers whose sum is {rows.shape[0]}")
    row = math.prod(rows.shape[1:])
    memory, counts = ffi.new("void **"), ffi.new("uint64_t[]", ranks)
    whole = named("alltoall", name, process_set)
    send_counts = ffi.new("uint64_t[]", [part * row for part in parts])
    arguments = (address(rows), send_counts, memory, counts, TYPES[rows.dtype])
    options = dict(process_set=process_set, shape=rows.shape[1:])
    handle = submit_move(lib.ddl_alltoallv_async, whole, tensor, *arguments, **options)

    def result():
        received = [count // max(row, 1) for count in counts]
        output = _taken(memory, sum(counts), rows)
        return output if splits is None else (output, torch.tensor(received, dtype=torch.int32))

    return opened(handle, result, rows, whole, process_set)


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        ranks = set_of(process_set).size or 0
        given = splits if splits is not None else [rows_of(tensor).shape[0] // ranks] * ranks
        output, received = synchronize(alltoall_async(tensor, given, name, process_set))
        ctx.received, ctx.process_set = received, process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx, gradient, _):
        output, _ = synchronize(alltoall_async(gradient.contiguous(), ctx.received, None, ctx.process_set))
        return output, None, None, None


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    rows, ranks = rows_of(tensor), set_of(process_set).size or 1
    if splits is None and rows.shape[0] % ranks:
        raise ValueError(f"{rows.shape[0]} rows are no {ranks} equal parts; give splits")
    output, received = _Alltoall.apply(tensor, splits, name, process_set)
    return output if splits is None else (output, received)
