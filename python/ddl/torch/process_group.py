"""A backend of torch.distributed, so that unchanged programs of DistributedDataParallel run over libddl.

    import ddl.torch.process_group  # registers it
    torch.distributed.init_process_group("ddl")

Groups of some ranks, by new_group(), are run by gloo: PyTorch tells a backend nothing of the ranks that are
not in them, and libddl's process sets need all ranks.
"""
from __future__ import annotations

import queue
import threading
from typing import Any, Callable

import torch
import torch.distributed as dist

import ddl
from ddl._context import _at_end, call_ordered
from ddl._library import NULL, ffi, lib
from ddl._tensors import submit
from ddl.errors import check
from ddl.torch._tensors import TYPES, address, stream_of

_OPS = {
    "SUM": lib.DDL_SUM,
    "AVG": lib.DDL_AVERAGE,
    "PRODUCT": lib.DDL_PRODUCT,
    "MIN": lib.DDL_MIN,
    "MAX": lib.DDL_MAX,
    "BAND": lib.DDL_BIT_AND,
    "BOR": lib.DDL_BIT_OR,
    "BXOR": lib.DDL_BIT_XOR,
}


def _op(given: Any) -> int:
    name = getattr(given, "op", given).name  # some versions wrap the enumeration
    if name not in _OPS:
        raise ValueError(f"libddl has no operation {name}")
    return _OPS[name]


_kept_lock = threading.Lock()


class _Work(dist._Work if hasattr(dist, "_Work") else dist.Work):
    """A call that goes on.

    PyTorch may keep its C++ part alone, whose wait() never ends. So each lives until somebody has waited for it or has
    taken its future; of those that nobody asks for, the latest.
    """

    _kept: dict[_Work, None] = {}
    _most_kept = 256

    def __init__(self, result: Any):
        super().__init__()
        self._done = threading.Event()
        self._is_taken = False
        self._error: Exception | None = None
        self._result = result
        # The second one fails if its function raises, which C++ understands; set_exception() is for Python alone, and
        # DistributedDataParallel would take the error for a tensor.
        self._end: torch.futures.Future = torch.futures.Future()
        self._future = self._end.then(self._outcome)
        with _kept_lock:
            _Work._kept[self] = None
            if len(_Work._kept) > _Work._most_kept:
                oldest = next(iter(_Work._kept))
                if oldest._done.is_set():
                    del _Work._kept[oldest]

    def finish(self, error: Exception | None) -> None:
        self._error = error
        self._done.set()
        self._end.set_result(None)
        self._release()

    def _outcome(self, _: Any) -> Any:
        if self._error is not None:
            raise self._error
        return self._result

    def _release(self) -> None:
        if self._is_taken and self._done.is_set():
            with _kept_lock:
                _Work._kept.pop(self, None)

    def wait(self, timeout: Any = None) -> bool:
        self._done.wait()
        self._is_taken = True
        self._release()
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        return self._done.is_set()

    def is_success(self) -> bool:
        return self._done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def get_future(self) -> torch.futures.Future:
        self._is_taken = True
        self._release()
        return self._future

    def result(self) -> Any:
        return self._result


class _Waiter:
    """A thread that waits for calls, one after the other, and completes their works."""

    def __init__(self) -> None:
        self._calls: queue.Queue[tuple[Callable[[], None], _Work] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="ddl-works", daemon=True)
        self._thread.start()

    def add(self, wait: Callable[[], None], work: _Work) -> _Work:
        self._calls.put((wait, work))
        return work

    def end(self) -> None:
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            wait, work = call
            try:
                wait()
            except Exception as error:
                work.finish(error)
            else:
                work.finish(None)
            del call, wait, work


class ProcessGroup(dist.ProcessGroup):
    """All ranks of the job. Calls are named tensors with numbers for names: every rank makes the same calls."""

    def __init__(self, rank: int, size: int):
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._calls = 0
        self._waiter = _Waiter()

    def getBackendName(self) -> str:
        return "ddl"

    # A call: what libddl gets, and what is done when it is complete.

    def _in_place(self, function: Callable[..., int], tensor: torch.Tensor, places: int, how: int) -> _Work:
        """Submits a tensor, or a contiguous copy of it. places: how often libddl takes its address."""
        whole = tensor if tensor.is_contiguous() else tensor.contiguous()
        self._calls += 1
        arguments = (*[address(whole)] * places, whole.numel(), TYPES[whole.dtype], how)
        stream = stream_of(whole)
        handle = submit(function, f"torch.{self._calls}".encode(), *arguments, shape=whole.shape, stream=stream)

        def wait() -> None:
            check(lib.ddl_wait(handle))
            if whole is not tensor:
                tensor.copy_(whole)

        return self._waiter.add(wait, _Work([tensor]))

    def _at_once(self, call: Callable[[], Any], result: Any) -> _Work:
        """An ordered call: the waiter makes it in its turn. It has no number, since two ranks may make it alone."""
        return self._waiter.add(call, _Work(result))

    @staticmethod
    def _one(tensors: Any) -> torch.Tensor:
        if len(tensors) != 1:
            raise ValueError("libddl takes one tensor at a time")
        if tensors[0].dtype not in TYPES or tensors[0].is_sparse:
            raise ValueError(f"libddl has no tensors of {tensors[0].dtype}")
        return tensors[0]

    # Reductions and moves, as torch.distributed calls them.

    def allreduce(self, tensors: Any, opts: Any = None) -> _Work:
        tensor = self._one(tensors)
        op = lib.DDL_SUM if opts is None else _op(opts.reduceOp)
        return self._in_place(lib.ddl_allreduce_async, tensor, 2, op)

    def broadcast(self, tensors: Any, opts: Any = None) -> _Work:
        root = opts.rootRank if opts is not None else 0
        return self._in_place(lib.ddl_broadcast_async, self._one(tensors), 1, root)

    @staticmethod
    def _ordered(function: Callable[..., int], like: torch.Tensor, *arguments: Any) -> None:
        call_ordered(function, arguments, stream=stream_of(like))

    def _allgather(self, output: torch.Tensor, tensor: torch.Tensor) -> None:
        places = address(tensor), address(output)
        self._ordered(lib.ddl_allgather, tensor, *places, tensor.numel(), TYPES[tensor.dtype])

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> _Work:
        tensor, outputs = self._one(input_tensors).contiguous(), output_tensors[0]

        def call() -> None:
            flat = torch.empty((self._size, *tensor.shape), dtype=tensor.dtype, device=tensor.device)
            self._allgather(flat, tensor)
            for output, part in zip(outputs, flat):
                output.copy_(part)

        return self._at_once(call, output_tensors)

    def _allgather_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> _Work:
        whole = tensor.contiguous()
        return self._at_once(lambda: self._allgather(output, whole), output)

    def reduce(self, tensors: Any, opts: Any) -> _Work:
        tensor = self._one(tensors)

        def call() -> None:
            whole = tensor.contiguous()
            places, how = [address(whole)] * 2, (_op(opts.reduceOp), opts.rootRank)
            self._ordered(lib.ddl_reduce, whole, *places, whole.numel(), TYPES[whole.dtype], *how)
            if whole is not tensor:
                tensor.copy_(whole)

        return self._at_once(call, [tensor])

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any) -> _Work:
        tensor = self._one(input_tensors).contiguous()
        is_root = self._rank == opts.rootRank

        def call() -> None:
            flat = torch.empty((self._size if is_root else 0, *tensor.shape), dtype=tensor.dtype, device=tensor.device)
            places = address(tensor), address(flat) if is_root else NULL
            self._ordered(lib.ddl_gather, tensor, *places, tensor.numel(), TYPES[tensor.dtype], opts.rootRank)
            for output, part in zip(output_tensors[0] if is_root else (), flat):
                output.copy_(part)

        return self._at_once(call, output_tensors)

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any) -> _Work:
        tensor = self._one(output_tensors)
        is_root = self._rank == opts.rootRank

        def call() -> None:
            flat = torch.stack(list(input_tensors[0])).contiguous() if is_root else None
            whole = torch.empty_like(tensor, memory_format=torch.contiguous_format)
            places = address(flat) if is_root else NULL, address(whole)
            self._ordered(lib.ddl_scatter, whole, *places, whole.numel(), TYPES[whole.dtype], opts.rootRank)
            tensor.copy_(whole)

        return self._at_once(call, output_tensors)

    def _reduce_scatter(self, output: torch.Tensor, flat: torch.Tensor, op: int) -> None:
        places, counts = (address(flat), address(output)), ffi.new("uint64_t[]", [output.numel()] * self._size)
        self._ordered(lib.ddl_reduce_scatter, flat, *places, counts, TYPES[flat.dtype], op)

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> _Work:
        tensor = self._one(output_tensors)
        op = lib.DDL_SUM if opts is None else _op(opts.reduceOp)

        def call() -> None:
            whole = torch.empty_like(tensor, memory_format=torch.contiguous_format)
            self._reduce_scatter(whole, torch.stack(list(input_tensors[0])).contiguous(), op)
            tensor.copy_(whole)

        return self._at_once(call, output_tensors)

    def _reduce_scatter_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> _Work:
        op = lib.DDL_SUM if opts is None else _op(opts.reduceOp)
        whole = tensor.contiguous()
        return self._at_once(lambda: self._reduce_scatter(output, whole, op), output)

    def _alltoallv(self, flat: torch.Tensor, counts: list[int], capacity: int) -> torch.Tensor:
        received = torch.empty(capacity, dtype=flat.dtype, device=flat.device)
        sent = address(flat), ffi.new("uint64_t[]", counts)
        taken = address(received), capacity, ffi.new("uint64_t[]", self._size)
        self._ordered(lib.ddl_alltoallv, flat, *sent, *taken, TYPES[flat.dtype])
        return received

    def alltoall_base(self, output: Any, tensor: Any, output_splits: Any, input_splits: Any, opts: Any = None) -> _Work:
        row = tensor[0].numel() if tensor.dim() > 1 and tensor.shape[0] else 1
        counts = [split * row for split in input_splits or [tensor.numel() // row // self._size] * self._size]
        whole = tensor.contiguous()

        def call() -> None:
            output.copy_(self._alltoallv(whole.view(-1), counts, output.numel()).view(output.shape))

        return self._at_once(call, output)

    def alltoall(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> _Work:
        def call() -> None:
            flat = torch.cat([tensor.contiguous().view(-1) for tensor in input_tensors])
            counts = [tensor.numel() for tensor in input_tensors]
            received = self._alltoallv(flat, counts, sum(tensor.numel() for tensor in output_tensors))
            for output, part in zip(output_tensors, received.split([tensor.numel() for tensor in output_tensors])):
                output.copy_(part.view(output.shape))

        return self._at_once(call, output_tensors)

    def send(self, tensors: Any, peer: int, tag: int = 0) -> _Work:
        tensor = self._one(tensors).contiguous()
        stream = stream_of(tensor)  # of this thread

        def call() -> None:
            arguments = (address(tensor), tensor.numel(), TYPES[tensor.dtype], peer)
            call_ordered(lib.ddl_send, arguments, stream=stream)

        return self._at_once(call, tensors)

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> _Work:
        tensor = self._one(tensors)

        def call() -> None:
            whole = tensor
            if not tensor.is_contiguous():
                whole = torch.empty_like(tensor, memory_format=torch.contiguous_format)
            self._ordered(lib.ddl_recv, whole, address(whole), whole.numel(), TYPES[whole.dtype], peer)
            if whole is not tensor:
                tensor.copy_(whole)

        return self._at_once(call, tensors)

    def barrier(self, opts: Any = None) -> _Work:
        return self._at_once(ddl.barrier, [])


_group: ProcessGroup | None = None


def _end() -> None:
    """Before ddl.shutdown(): the thread must not be inside a call."""
    global _group
    if _group is not None:
        _group._waiter.end()
        _group = None


def _make(store: Any, rank: int, size: int, timeout: Any) -> Any:
    """What init_process_group() and new_group() call."""
    global _group
    ddl.init()
    if size != ddl.size():
        return dist.ProcessGroupGloo(store, rank, size, timeout)
    if rank != ddl.rank():
        raise ValueError(
            f"RANK and WORLD_SIZE say that this is rank {rank} of {size}, and libddl that it is rank {ddl.rank()} "
            f"of {ddl.size()}: start the program by ddlrun"
        )
    if _group is None:
        _group = ProcessGroup(rank, size)
        _at_end.append(_end)
        return _group
    # A second group of all ranks: its calls must not mix with those of the first.
    return dist.ProcessGroupGloo(store, rank, size, timeout)


if not hasattr(dist.Backend, "DDL"):
    dist.Backend.register_backend("ddl", _make)


# For DistributedDataParallel over any backend.


class _Hook:
    """Calls of the hook, on whatever thread makes the backward pass."""

    def __init__(self) -> None:
        self.calls = 0
        self.waiter = _Waiter()
        _at_end.append(self.waiter.end)


_hook: _Hook | None = None


def average_by_ddl(state, bucket):
    """A communication hook: gradients are averaged by libddl, whatever the model's process group is.

    model.register_comm_hook(None, ddl.torch.process_group.average_by_ddl)
    """
    # PyTorch looks at the parameters' names, and refuses annotations that are texts.
    global _hook
    ddl.init()
    if _hook is None:
        _hook = _Hook()
    _hook.calls += 1
    tensor = bucket.buffer()
    name, stream = f"bucket.{_hook.calls}".encode(), stream_of(tensor)
    arguments = (address(tensor), address(tensor), tensor.numel(), TYPES[tensor.dtype], lib.DDL_AVERAGE)
    handle = submit(lib.ddl_allreduce_async, name, *arguments, shape=tensor.shape, stream=stream)
    work = _Work(tensor)
    _hook.waiter.add(lambda: check(lib.ddl_wait(handle)), work)
    return work.get_future()
