"""Tensors and IndexedSlices of all ranks combined, by Horovod's names."""
from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf

from ddl._horovod import Average, ProcessSet, Sum, _Op, global_process_set, op_of
from ddl.tensorflow._ops import gather_together, reduce_together, scatter_together, size_of
from ddl.tensorflow.compression import Compression


def _slices_together(
    slices: Sequence[tf.IndexedSlices], name: str | None, op: _Op, scales: tuple[float, float],
    process_set: ProcessSet, ignore_name_scope: bool,
) -> list[tf.IndexedSlices]:
    """The slices of all ranks, one after the other. Their sum is what an allreduce of the whole tensors would give."""
    if op not in (Sum, Average):
        raise NotImplementedError(f"IndexedSlices have Sum and Average, not {op}; make tensors of them")
    if scales != (1.0, 1.0):
        raise NotImplementedError("IndexedSlices have no prescale_factor and no postscale_factor")

    def gathered(part: str, tensors: list[tf.Tensor]) -> list[tf.Tensor]:
        return gather_together(tensors, name and f"{name}_{part}", process_set, ignore_name_scope)

    values = gathered("values", [one.values for one in slices])
    indices = gathered("indices", [one.indices for one in slices])
    if op is Average:
        values = [value / size_of(process_set, value.dtype) for value in values]
    return [tf.IndexedSlices(*pair, one.dense_shape) for *pair, one in zip(values, indices, slices)]


def grouped_allreduce(
    tensors,
    average=None,
    device_dense="",
    device_sparse="",
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    ignore_name_scope=False,
    name=None,
):
    """Tensors or IndexedSlices of all ranks combined; each kind is handled together."""
    op, scales = op_of(average, op), (prescale_factor, postscale_factor)
    results: list[Any] = list(tensors)
    sparse = [i for i, one in enumerate(results) if isinstance(one, tf.IndexedSlices)]
    dense = [i for i in range(len(results)) if i not in sparse]
    if sparse:
        with tf.device(device_sparse):
            slices = [results[i] for i in sparse]
            found = _slices_together(slices, name, op, scales, process_set, ignore_name_scope)
        for i, one in zip(sparse, found):
            results[i] = one
    if dense:
        with tf.device(device_dense):
            small, kept = zip(*(compression.compress(tf.convert_to_tensor(results[i])) for i in dense))
            reduced = reduce_together(small, name, op, *scales, process_set, ignore_name_scope)
            for i, one, context in zip(dense, reduced, kept):
                results[i] = compression.decompress(one, context)
    return results


def allreduce(
    tensor,
    average=None,
    device_dense="",
    device_sparse="",
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    name=None,
    process_set=global_process_set,
    ignore_name_scope=False,
):
    """The ranks' tensors combined. Of IndexedSlices: those of all ranks, one after the other."""
    return grouped_allreduce(
        [tensor], average, device_dense, device_sparse, compression, op, prescale_factor, postscale_factor, process_set,
        ignore_name_scope, name,
    )[0]


def grouped_reducescatter(
    tensors,
    device_dense="",
    compression=Compression.none,
    op=Average,
    name=None,
    process_set=global_process_set,
    ignore_name_scope=False,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """The ranks' tensors combined, of which each rank gets some rows; the first ranks may get one more."""
    if not tensors:
        return []
    with tf.device(device_dense):
        small, kept = zip(*(compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors))
        scales = prescale_factor, postscale_factor
        results = scatter_together(small, name, op, *scales, process_set, ignore_name_scope)
        return [compression.decompress(result, context) for result, context in zip(results, kept)]


def reducescatter(
    tensor,
    device_dense="",
    compression=Compression.none,
    op=Average,
    name=None,
    process_set=global_process_set,
    ignore_name_scope=False,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    return grouped_reducescatter(
        [tensor], device_dense, compression, op, name, process_set, ignore_name_scope, prescale_factor, postscale_factor
    )[0]
