"""What PyTorch calls of a process group and of a backend: the same methods, under all names that versions have."""
from __future__ import annotations

import math
from datetime import timedelta
from typing import Any, Callable, Sequence

import torch

from ddl._library import lib
from ddl.torch.distributed.collectives import dense, joined, op_of, room_for, spread, summable
from ddl.torch.distributed.members import Members
from ddl.torch.distributed.versions import for_several_tensors
from ddl.torch.distributed.works import Work


def _one(tensors: Any) -> torch.Tensor:
    """PyTorch gives lists, of one tensor for each device of this rank, of which there is one."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError(f"libddl takes one tensor at a time, not {len(tensors)}")
    return tensors[0]


def _list(tensors: Any) -> Sequence[torch.Tensor]:
    """A list of tensors, also in a list of one."""
    return tensors if isinstance(tensors[0], torch.Tensor) else tensors[0]


def _reduction(opts: Any) -> int:
    """Of options, of an operation itself, or of nothing."""
    return lib.DDL_SUM if opts is None else op_of(getattr(opts, "reduceOp", opts))


def _on(stream: Any, call: Callable[[], None]) -> Callable[[], None]:
    def on_stream() -> None:
        with torch.cuda.stream(stream):
            call()

    return on_stream


def _same(name: str, tensor: torch.Tensor, others: Sequence[torch.Tensor], count: int | None = None) -> None:
    """The others have the tensor's type and device, and, if count is given, so many elements in all."""
    for other in others:
        if other.dtype != tensor.dtype or other.device != tensor.device:
            raise ValueError(f"{name}: one tensor is of {tensor.dtype} on {tensor.device}, and another of "
                             f"{other.dtype} on {other.device}")
    have = count if count is None else sum(other.numel() for other in others)
    if have != count:
        raise ValueError(f"{name}: the tensors have {have} elements where {count} are needed")


class Methods:
    """Of the members of a group, in self.members."""

    members: Members

    def getBackendName(self) -> str:  # noqa: N802  PyTorch's name
        return "ddl"

    def _submit(self, opts: Any, tensor: torch.Tensor | None, result: Any, call: Callable[..., None], *arguments: Any
                ) -> Work:
        """A work of call(*arguments, seconds), on the stream that is current for the tensor."""
        seconds = self.members.seconds(opts)
        if tensor is not None and tensor.is_cuda:
            call = _on(torch.cuda.current_stream(tensor.device), lambda now=call: now(*arguments, seconds))
        else:
            call = lambda now=call: now(*arguments, seconds)
        return self.members.submit(call, result, getattr(opts, "asyncOp", True) is False)

    def _needs_each(self, name: str, tensors: Sequence[Any], what: str) -> None:
        if len(tensors) != self.members.size:
            raise ValueError(f"{name} needs {self.members.size} {what}, one for each rank of the group, and has "
                             f"{len(tensors)}")

    # Reductions.

    def allreduce(self, tensors: Any, opts: Any = None, **more: Any) -> Work:
        tensor, op = _one(tensors), _reduction(more.get("op", opts))
        if tensor.layout == torch.sparse_coo:
            return self.allreduce_sparse([tensor], opts)
        if tensor.is_cuda:
            call = self.members.calls.submit(lib.ddl_allreduce_async, summable(tensor), 2, op)
            return self._submit(opts, tensor, [tensor], call)
        return self._submit(opts, tensor, [tensor], self.members.calls.allreduce, summable(tensor), op)

    def allreduce_sparse(self, tensors: Any, opts: Any = None) -> Work:
        tensor = _one(tensors)
        if _reduction(opts) != lib.DDL_SUM:
            raise ValueError("sparse tensors have no reduction operation but SUM")
        summable(tensor.detach()._values())
        return self._submit(opts, tensor, [tensor], self.members.calls.allreduce_sparse, tensor)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Any:
        op, all_dense = _reduction(opts), [summable(tensor) for tensor in tensors]
        work = self._submit(opts, tensors[0], tensors, self.members.calls.allreduce_all, all_dense, op)
        return for_several_tensors(work)

    def reduce(self, tensors: Any, opts: Any) -> Work:
        tensor = _one(tensors)
        how = _reduction(opts), opts.rootRank
        return self._submit(opts, tensor, [tensor], self.members.calls.reduce, summable(tensor), *how)

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        output, inputs = _one(output_tensors), _list(input_tensors)
        self._needs_each("reduce_scatter", inputs, "inputs")
        _same("reduce_scatter", output, inputs)
        op, room, parts = _reduction(opts), summable(output), [summable(one) for one in inputs]
        counts = [one.numel() for one in parts]

        def call(seconds: float) -> None:
            self.members.calls.reduce_scatter(room, joined(parts), counts, op, seconds)

        return self._submit(opts, output, [output], call)

    def reduce_scatter_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Work:
        return self._reduce_scatter_singles([output], [tensor], opts)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return for_several_tensors(self._reduce_scatter_singles(outputs, inputs, opts))

    def _reduce_scatter_singles(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        op, size = _reduction(opts), self.members.size
        pairs = [(summable(output), summable(tensor)) for output, tensor in zip(outputs, inputs)]
        for output, tensor in pairs:
            _same("reduce_scatter_tensor", output, [tensor], output.numel() * size)

        def call(seconds: float) -> None:
            for output, tensor in pairs:
                counts = [output.numel()] * size
                self.members.calls.reduce_scatter(output, tensor.contiguous(), counts, op, seconds)

        return self._submit(opts, outputs[0], outputs, call)

    # Moves.

    def broadcast(self, tensors: Any, opts: Any = None, **more: Any) -> Work:
        tensor = _one(tensors)
        root = more.get("root", opts if isinstance(opts, int) else getattr(opts, "rootRank", 0))
        if tensor.is_cuda:
            call = self.members.calls.submit(lib.ddl_broadcast_async, dense(tensor), 1, root)
            return self._submit(opts, tensor, [tensor], call)
        return self._submit(opts, tensor, [tensor], self.members.calls.broadcast, dense(tensor), root)

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        return self.allgather_coalesced([[output] for output in _list(output_tensors)], [_one(input_tensors)], opts)

    def allgather_coalesced(self, output_lists: Any, inputs: Any, opts: Any = None) -> Work:
        """output_lists: for each rank, one tensor for each of its inputs."""
        self._needs_each("all_gather", output_lists, "outputs")
        pairs = []
        for given, tensor in zip(zip(*output_lists), inputs):
            outputs, own = [dense(output) for output in given], given[self.members.rank]
            _same("all_gather", tensor, outputs)
            if own.numel() != tensor.numel():
                raise ValueError(f"all_gather: the output for this rank has {own.numel()} elements, and its input "
                                 f"{tensor.numel()}")
            pairs.append((outputs, dense(tensor)))

        def call(seconds: float) -> None:
            for outputs, tensor in pairs:
                self.members.calls.allgather(outputs, tensor, seconds)

        return self._submit(opts, inputs[0], output_lists, call)

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Work:
        return self._all_gather_singles([output], [tensor], opts)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return for_several_tensors(self._all_gather_singles(outputs, inputs, opts))

    def _all_gather_singles(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        pairs = [(dense(output), dense(tensor)) for output, tensor in zip(outputs, inputs)]
        for output, tensor in pairs:
            _same("all_gather_into_tensor", tensor, [output], tensor.numel() * self.members.size)

        def call(seconds: float) -> None:
            for output, tensor in pairs:
                self.members.calls.allgather_single(output, tensor, seconds)

        return self._submit(opts, inputs[0], outputs, call)

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any) -> Work:
        tensor, outputs = _one(input_tensors), []
        if self.members.rank == opts.rootRank:
            outputs = [dense(output) for output in _list(output_tensors)]
            self._needs_each("gather", outputs, "outputs")
            _same("gather", tensor, outputs, tensor.numel() * self.members.size)
        return self._submit(opts, tensor, output_tensors, self.members.calls.gather, outputs, dense(tensor),
                            opts.rootRank)

    def gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any) -> Work:
        is_root = self.members.rank == opts.rootRank
        outputs = [list(dense(output).view(self.members.size, -1).unbind())] if is_root else []
        return self.gather(outputs, [tensor.reshape(-1)], opts)

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any) -> Work:
        output, inputs = _one(output_tensors), []
        if self.members.rank == opts.rootRank:
            inputs = [dense(one) for one in _list(input_tensors)]
            self._needs_each("scatter", inputs, "inputs")
            _same("scatter", output, inputs, output.numel() * self.members.size)
        return self._submit(opts, output, [output], self.members.calls.scatter, dense(output), inputs, opts.rootRank)

    def all_to_all_single(self, output: torch.Tensor, tensor: torch.Tensor, output_splits: Sequence[int],
                          input_splits: Sequence[int], opts: Any = None) -> Work:
        _same("all_to_all_single", tensor, [output])
        sizes = self._split_sizes(tensor, input_splits, "input")
        room_sizes = self._split_sizes(output, output_splits, "output")
        whole, whole_output = dense(tensor), dense(output)

        def call(seconds: float) -> None:
            room = room_for([whole_output])
            if input_splits or output_splits:
                self.members.calls.alltoall(room, joined([whole]), sizes, room_sizes, seconds)
            else:
                self.members.calls.alltoall_equal(room, joined([whole]), seconds)
            spread(room, [whole_output])

        return self._submit(opts, tensor, [output], call)

    def _split_sizes(self, tensor: torch.Tensor, splits: Sequence[int], what: str) -> list[int]:
        """How many elements belong to each rank."""
        rows, size = (tensor.shape[0] if tensor.dim() else 1), self.members.size
        if not splits and rows % size:
            raise ValueError(f"Tensor's dim 0 does not divide equally across group size: the {what} has {rows} rows "
                             f"for {size} ranks")
        parts = list(splits) or [rows // size] * size
        if len(parts) != size or sum(parts) != rows:
            raise ValueError(f"Split sizes doesn't match total dim 0 size: the {what} has {rows} rows, and the splits "
                             f"for {size} ranks are {parts}")
        row = math.prod(tensor.shape[1:])
        return [part * row for part in parts]

    def alltoall(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        self._needs_each("all_to_all", output_tensors, "outputs")
        self._needs_each("all_to_all", input_tensors, "inputs")
        _same("all_to_all", input_tensors[0], [*input_tensors, *output_tensors])
        outputs, inputs = [dense(one) for one in output_tensors], [dense(one) for one in input_tensors]
        sizes, room_sizes = [one.numel() for one in inputs], [one.numel() for one in outputs]

        def call(seconds: float) -> None:
            room = room_for(outputs)
            self.members.calls.alltoall(room, joined(inputs), sizes, room_sizes, seconds)
            spread(room, outputs)

        return self._submit(opts, input_tensors[0], output_tensors, call)

    def barrier(self, opts: Any = None) -> Work:
        return self._submit(opts, None, [], self.members.calls.barrier)

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        timeout = getattr(timeout, "timeout", timeout)  # C++ gives options
        self.members.monitored_barrier(timeout, wait_all_ranks)

    # Messages.

    def send(self, tensors: Any, peer: int, tag: int = 0) -> Work:
        return self.members.message(self.members.messages.send, dense(_one(tensors)), peer, tag)

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> Work:
        return self.members.message(self.members.messages.recv, dense(_one(tensors)), peer, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        return self.members.message(self.members.messages.recv_anysource, dense(_one(tensors)), tag)

    # Several calls as one work.

    def start_coalescing(self, device: Any = None) -> None:
        self.members.begin_together()

    def end_coalescing(self, device: Any = None) -> Work | None:
        return self.members.end_together()

    # The end, and what is said of the group.

    def set_timeout(self, timeout: timedelta) -> None:
        self.members.set_timeout(timeout)

    def shutdown(self) -> None:
        self.members.close()

    def abort(self) -> None:
        self.members.close(abandon=True)

    # Names of versions. The older ones of Python's calls, and those by which C++ looks for methods.
    recvAnysource = recv_anysource  # noqa: N815
    monitoredBarrier = monitored_barrier  # noqa: N815
    _start_coalescing, _end_coalescing = start_coalescing, end_coalescing
    alltoall_base = all_to_all_single
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    gather_into_tensor = gather_single
    _set_default_timeout = set_timeout
