"""What _kernels.py has, as functions of Python, for a TensorFlow that libddl's module does not fit.

One function handles all tensors of a call, and TensorFlow runs one after the other: each blocks one of its threads, of
which it has no more than the machine has cores.
"""
from __future__ import annotations

import threading
from typing import Any, Callable, Sequence

import numpy as np
import tensorflow as tf

import ddl
from ddl import _horovod, _tensors
from ddl._context import ProcessSet, members_of
from ddl._kernels import note_failure
from ddl._library import ffi, lib
from ddl.errors import InvalidArgument, check
from ddl.tensorflow._xla import refuse_xla

_LAST = "ddl_last_call"  # a collection of a graph
_running = threading.Lock()


def _plain(array: np.ndarray) -> tuple[np.ndarray, str | None]:
    """The array as one that has the buffer protocol, and the type that libddl is told."""
    if array.dtype.name == "bfloat16":
        return np.ascontiguousarray(array).view(np.uint16), "bfloat16"
    return np.ascontiguousarray(array), None


def _call(
    function: Callable[..., Sequence[np.ndarray]], tensors: Sequence[tf.Tensor], types: Sequence[tf.DType],
    call: str, name: tuple[str | None, bool],
) -> list[tf.Tensor]:
    """An operation of a function of NumPy arrays, which is given the name of the tensor first."""
    refuse_xla(call, name[0])
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    whole = f"{call}.{name[0]}" if name[0] else call
    if graph is not None:
        whole = graph.unique_name(whole.replace(":", "_"))

    def run(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        try:
            with _running:
                return function(whole, *arrays)
        except ddl.Error as error:
            plain = type(error)(f"{error}")
            note_failure(plain)
            raise plain from None

    if graph is None:
        return _as_list(tf.numpy_function(run, tensors, types))
    # A branch is a graph of its own, which shares the collections of the graph that it is a branch of.
    lasts = graph.get_collection_ref(_LAST)
    with tf.control_dependencies([one for one in lasts if one.graph is graph]):
        results = _as_list(tf.numpy_function(run, tensors, types))
    lasts[:] = [*(one for one in lasts if one.graph is not graph), results[0]]
    return results


def _as_list(results: Any) -> list[tf.Tensor]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _shaped(results: list[tf.Tensor], shapes: Sequence[tf.TensorShape]) -> list[tf.Tensor]:
    for result, shape in zip(results, shapes):
        if not tf.executing_eagerly():
            result.set_shape(shape)
    return results


def allreduce(
    tensors: Sequence[tf.Tensor], name: tuple[str | None, bool],
    op: int, prescale: float, postscale: float, process_set: ProcessSet,
) -> list[tf.Tensor]:
    def run(whole: str, *arrays: np.ndarray) -> list[np.ndarray]:
        results, handles = [], []
        for i, array in enumerate(arrays):
            plain, dtype = _plain(array)
            result = np.empty_like(plain)
            options = dict(prescale=prescale, postscale=postscale, process_set=process_set, zeros_if_joined=True)
            if len(arrays) > 1:
                options.update(group=whole, group_size=len(arrays))
            part = whole if len(arrays) == 1 else f"{whole}.{i}"
            handles.append(_tensors.allreduce_async(plain, part, op, out=result, dtype=dtype, **options))
            results.append(result.view(array.dtype))
        for handle in handles:
            handle.wait()
        return results

    types = [tensor.dtype for tensor in tensors]
    return _shaped(_call(run, tensors, types, "allreduce", name), [tensor.shape for tensor in tensors])


def _move() -> dict[str, bool]:
    """Of all calls but an allreduce."""
    return {"zeros_if_joined": True, "fails_if_joined": _horovod.acts_as_horovod}


def _rows_and_counts(call: Callable[..., int], array: np.ndarray, whole: str, parts: Any, process_set: ProcessSet):
    """allgather and alltoall: the rows that came, and how many from each rank. parts: elements for each; or None."""
    plain, dtype = _plain(array if array.ndim else array.reshape(1))
    buffer = _tensors.buffer_of(plain, "the tensor", dtype=dtype)
    memory, counts = ffi.new("void **"), ffi.new("uint64_t[]", members_of(process_set))
    arguments = (buffer.address, *([buffer.count] if parts is None else [parts]), memory, counts, buffer.dtype)
    options = dict(process_set=process_set, shape=plain.shape[1:], **_move())
    handle = _tensors.submit(call, whole.encode(), *arguments, **options)
    check(lib.ddl_wait(handle))
    row = int(np.prod(plain.shape[1:], dtype=np.int64))
    received = np.empty((sum(counts) // max(row, 1), *plain.shape[1:]), plain.dtype)
    if received.nbytes:
        ffi.memmove(ffi.from_buffer(received), memory[0], received.nbytes)
    check(lib.ddl_free(ddl._context.context(), memory[0]))
    return received.view(array.dtype), np.array([count // max(row, 1) for count in counts])


def allgather(
    tensors: Sequence[tf.Tensor], name: tuple[str | None, bool], process_set: ProcessSet
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    def run(whole: str, *arrays: np.ndarray) -> list[np.ndarray]:
        found = [
            _rows_and_counts(lib.ddl_allgatherv_async, array, f"{whole}.{i}", None, process_set)
            for i, array in enumerate(arrays)
        ]
        return [rows for rows, _ in found] + [counts.astype(np.int64) for _, counts in found]

    types = [tensor.dtype for tensor in tensors] + [tf.int64] * len(tensors)
    results = _call(run, tensors, types, "allgather", name)
    return results[: len(tensors)], _shaped(results[len(tensors) :], [tf.TensorShape([None])] * len(tensors))


def broadcast(tensor: tf.Tensor, name: tuple[str | None, bool], root: int, process_set: ProcessSet) -> tf.Tensor:
    def run(whole: str, array: np.ndarray) -> list[np.ndarray]:
        plain, dtype = _plain(array.copy())
        _tensors.broadcast_async(plain, whole, root, dtype=dtype, process_set=process_set, **_move()).wait()
        return [plain.view(array.dtype).reshape(array.shape)]

    return _shaped(_call(run, [tensor], [tensor.dtype], "broadcast", name), [tensor.shape])[0]


def alltoall(
    tensor: tf.Tensor, splits: tf.Tensor, name: tuple[str | None, bool], process_set: ProcessSet
) -> tuple[tf.Tensor, tf.Tensor]:
    def run(whole: str, array: np.ndarray, given: np.ndarray) -> list[np.ndarray]:
        rows, ranks = array if array.ndim else array.reshape(1), members_of(process_set)
        parts = list(given) or [len(rows) // ranks] * ranks
        if len(parts) != ranks or min(parts) < 0 or sum(parts) != len(rows):
            raise InvalidArgument(f"{whole}: splits must be {ranks} numbers whose sum is its {len(rows)} rows")
        row = int(np.prod(rows.shape[1:], dtype=np.int64))
        counts = ffi.new("uint64_t[]", [int(part) * row for part in parts])
        received, came = _rows_and_counts(lib.ddl_alltoallv_async, rows, whole, counts, process_set)
        return [received, came.astype(np.int32)]

    received, came = _call(run, [tensor, splits], [tensor.dtype, tf.int32], "alltoall", name)
    return received, _shaped([came], [tf.TensorShape([None])])[0]


def reducescatter(
    tensors: Sequence[tf.Tensor], name: tuple[str | None, bool],
    op: int, prescale: float, postscale: float, process_set: ProcessSet,
) -> list[tf.Tensor]:
    def run(whole: str, *arrays: np.ndarray) -> list[np.ndarray]:
        results, handles, keeps = [], [], []
        ranks, own = members_of(process_set), process_set.rank
        for i, array in enumerate(arrays):
            plain, dtype = _plain(array if array.ndim else array.reshape(1))
            rows = [len(plain) // ranks + (rank < len(plain) % ranks) for rank in range(ranks)]
            row = int(np.prod(plain.shape[1:], dtype=np.int64))
            result = np.empty((rows[own], *plain.shape[1:]), plain.dtype)
            send = _tensors.buffer_of(plain, "the tensor", dtype=dtype)
            recv = _tensors.buffer_of(result, "the result", writable=True, dtype=dtype)
            counts = ffi.new("uint64_t[]", [one * row for one in rows])
            options = dict(prescale=prescale, postscale=postscale, process_set=process_set, **_move())
            options["shape"] = plain.shape
            part = whole if len(arrays) == 1 else f"{whole}.{i}"
            arguments = (send.address, recv.address, counts, send.dtype, op)
            handles.append(_tensors.submit(lib.ddl_reduce_scatter_async, part.encode(), *arguments, **options))
            keeps.append((send, recv, counts))
            results.append(result.view(array.dtype))
        for handle in handles:
            check(lib.ddl_wait(handle))
        return results

    return _call(run, tensors, [tensor.dtype for tensor in tensors], "reducescatter", name)


def number(what: str, name: str | None) -> tf.Tensor:
    refuse_xla(f"{what}_op")

    def run() -> np.ndarray:
        return np.int32(getattr(ddl, what)())

    return _shaped(_as_list(tf.numpy_function(run, [], tf.int32, name=name)), [tf.TensorShape([])])[0]
