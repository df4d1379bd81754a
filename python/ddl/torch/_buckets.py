"""Gradients that lie one after the other in one buffer, so that they are combined by one call and without copies.

A bucket has the gradients of some parameters of one type. Its buffer lies in memory that all ranks of the host can
reach, if libddl has such memory: then a call reads and writes it directly. A parameter's ``grad`` is a view of it. What
autograd has made anew, because the program has set ``grad`` to None, is copied into the view once.
"""
from __future__ import annotations

import hashlib
import os
import sys
from typing import Any, Callable, Iterable
from weakref import WeakSet

import torch

import ddl
from ddl import _context
from ddl._horovod import synchronize
from ddl._library import ffi, lib
from ddl.torch._tensors import TYPES


MEGABYTE = 1 << 20


_said: set[str] = set()


def say(text: str) -> None:
    """With DDL_VERBOSE=1, on the first rank of each host, once until this process leaves the job."""
    if text not in _said and os.environ.get("DDL_VERBOSE", "0") not in ("", "0") and ddl.local_rank() == 0:
        _said.add(text)
        print(f"ddl.torch: {text}", file=sys.stderr, flush=True)


def shared_zeros(count: int, dtype: torch.dtype) -> torch.Tensor:
    """Zeros in memory that all ranks of this host can reach; in other memory if libddl has none. The former is there
    until no tensor uses it, but no longer than this process is in the job."""
    joined, memory = _context.context(), ffi.new("void **")
    size = count * torch.empty((), dtype=dtype).element_size()
    if size == 0 or lib.ddl_alloc(joined, size, memory) != lib.DDL_OK:
        if size:
            say(f"gradients lie in memory of this rank alone: {ffi.string(lib.ddl_last_error()).decode()}")
        return torch.zeros(count, dtype=dtype)

    def free(address: Any) -> None:
        if _context._context is joined:  # else ddl_finalize() has freed it
            lib.ddl_free(joined, address)

    return torch.frombuffer(ffi.buffer(ffi.gc(memory[0], free), size), dtype=dtype, count=count)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether its elements fill some memory without holes, in whatever order of its dimensions."""
    expected = 1
    for stride, length in sorted(zip(tensor.stride(), tensor.shape)):
        if length == 1:
            continue
        if stride != expected:
            return False
        expected *= length
    return True


def why_not(parameter: torch.Tensor) -> str | None:
    """Why the gradient of a parameter cannot be a view; None: it can."""
    if parameter.device.type != "cpu":
        return "is on a device"
    if parameter.layout is not torch.strided:
        return "is sparse"
    if parameter.dtype not in TYPES:
        return f"is of {parameter.dtype}"
    if not is_dense(parameter):
        return "has holes between its elements"
    return None


class Bucket:
    """The gradients of some parameters, one after the other, then zeros up to a multiple of some elements."""

    _all: WeakSet[Bucket] = WeakSet()

    def __init__(self, number: int, parameters: Iterable[torch.Tensor], names: Iterable[str], multiple: int = 1):
        self.number = number
        self.parameters = list(parameters)
        self.begins: list[int] = []
        self.names = list(names)
        count = 0
        for parameter in self.parameters:
            self.begins.append(count)
            count += parameter.numel()
        self.count = -(-count // multiple) * multiple
        self.dtype = self.parameters[0].dtype
        self.flat: torch.Tensor | None = None
        self._views: dict[torch.Tensor, torch.Tensor] = {}
        self._ready: set[torch.Tensor] = set()
        self._call: int | None = None  # that combines the gradients of all ranks
        self._failure: Exception | None = None
        Bucket._all.add(self)

    def digest(self) -> str:
        """Another one on a rank whose bucket has other parameters."""
        parts = [(name, tuple(p.shape), p.stride(), str(p.dtype)) for name, p in zip(self.names, self.parameters)]
        return hashlib.sha256(repr((parts, self.count)).encode()).hexdigest()[:12]

    def view_of(self, flat: torch.Tensor, index: int) -> torch.Tensor:
        """A parameter's part of a buffer that is laid out like this one, with the parameter's shape and strides."""
        parameter = self.parameters[index]
        return torch.as_strided(flat, parameter.shape, parameter.stride(), flat.storage_offset() + self.begins[index])

    def allocate(self) -> None:
        if self.flat is None:
            self.flat = shared_zeros(self.count, self.dtype)
            self._views = {one: self.view_of(self.flat, i) for i, one in enumerate(self.parameters)}

    def take(self, parameter: torch.Tensor) -> bool:
        """The parameter's gradient is there: makes it the view. Returns whether those of all parameters are."""
        self.allocate()
        view, gradient = self._views[parameter], parameter.grad
        if not parameter.requires_grad:  # since it was frozen: its gradient stays, and the others get zeros
            if gradient is view:
                parameter.grad = view.clone()
            view.zero_()
        elif gradient.is_sparse:
            view.zero_()
        elif gradient is not view:
            with torch.no_grad():
                view.copy_(gradient)
            if not gradient.requires_grad:
                parameter.grad = view
            else:  # of backward(create_graph=True): the program may need its graph
                name = dict(zip(self.parameters, self.names))[parameter]
                say(f"the gradient of {name} is copied in and out of its bucket, because it has a graph of its own")
        self._ready.add(parameter)
        return len(self._ready) == len(self.parameters)

    def wait(self) -> None:
        """For the call, if it has been submitted. It is waited for by each parameter, and its failure is that of all."""
        call, self._call = self._call, None
        if call is not None:
            try:
                synchronize(call)
            except Exception as error:
                self._failure = error
        if self._failure is not None:
            raise self._failure

    def result_of(self, parameter: torch.Tensor) -> torch.Tensor | None:
        """What is to be stored in the parameter's gradient; None: it is there."""
        view, gradient = self._views[parameter], parameter.grad
        if gradient is view or gradient is None or not parameter.requires_grad:
            return None
        if gradient.requires_grad:
            gradient.data.copy_(view)
            return None
        return view

    def begin_anew(self) -> None:
        """No gradient of the next step is there."""
        self._ready.clear()
        self._call = self._failure = None

    def release(self) -> None:
        """Gives the buffer back. Gradients that were views become tensors of their own."""
        if self.flat is None:
            return
        for parameter, view in self._views.items():
            if parameter.grad is view:
                parameter.grad = view.clone()
        self._views, self.flat = {}, None
        self._ready.clear()


def _release_all() -> None:
    """Before this process leaves the job, and with it the memory."""
    for bucket in list(Bucket._all):
        bucket.release()
    _said.clear()


_context.call_when_joined(lambda _: None, _release_all)


def cut(parameters: Iterable[torch.Tensor], most_bytes: int) -> list[list[torch.Tensor]]:
    """Neighbours of one type, together of at most so many bytes, or alone. The order is kept."""
    open_lists: dict[torch.dtype, list[torch.Tensor]] = {}
    sizes: dict[torch.dtype, int] = {}
    lists: list[list[torch.Tensor]] = []
    for parameter in parameters:
        dtype, size = parameter.dtype, parameter.numel() * parameter.element_size()
        if dtype not in open_lists or sizes[dtype] + size > most_bytes:
            open_lists[dtype], sizes[dtype] = [], 0
            lists.append(open_lists[dtype])
        open_lists[dtype].append(parameter)
        sizes[dtype] += size
    return lists
