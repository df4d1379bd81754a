"""Operations on dense tensors, with gradients. They run in graphs, in functions, and eagerly.

A gradient of an allreduce is combined alike; that of an allgather or broadcast is averaged, and goes to whose rows or
elements it is.
"""
from __future__ import annotations

import importlib
from typing import Any, Callable, Sequence

import tensorflow as tf

import ddl
from ddl._context import ProcessSet as _Set, is_elastic
from ddl._horovod import Average, ProcessSet, Sum, _Op, global_process_set, root_in, set_of, with_id
from ddl.tensorflow._module import operations

# Two modules with the same functions, of which one is imported.
_calls = importlib.import_module(f"ddl.tensorflow.{'_fallback' if operations is None else '_kernels'}")

def _chosen(process_set: ProcessSet) -> _Set:
    """The set of libddl; an error of TensorFlow if this rank is not in it."""
    if process_set.included() is False:
        raise tf.errors.InvalidArgumentError(None, None, f"rank {ddl.rank()} is not in {process_set}")
    return set_of(process_set)


def _is_of_now(process_set: ProcessSet) -> bool:
    """Whether rank and size are asked for when the function runs: in an elastic job they may be others in the next
    generation, and the function stays. Of a set with the program's own ranks they are those of its list."""
    return process_set is global_process_set and not tf.executing_eagerly() and is_elastic()


def size_of(process_set: ProcessSet, dtype: tf.DType) -> tf.Tensor:
    """How many ranks the set has."""
    return tf.cast(size_op() if _is_of_now(process_set) else process_set.size(), dtype)


def _known_rows(shape: tf.TensorShape, rows: int | None) -> tf.TensorShape:
    """The shape with another number of rows; a scalar has one row."""
    if shape.rank is None:
        return shape
    return tf.TensorShape([rows]).concatenate(shape[1:] if shape.rank else [])


def _with_shapes(results: Sequence[tf.Tensor], shapes: Sequence[tf.TensorShape]) -> list[tf.Tensor]:
    if not tf.executing_eagerly():
        for result, shape in zip(results, shapes):
            result.set_shape(shape)
    return list(results)


def tensors_of(values: Sequence[Any]) -> list[tf.Tensor]:
    return [tf.convert_to_tensor(value) for value in values]


def _differentiable(forward: Callable[..., Any], backward: Callable[..., Any], inputs: Sequence[tf.Tensor]) -> list:
    """What forward(inputs) gives, first the tensors that have a gradient. backward: gets their gradients, and returns
    those of the inputs."""

    @tf.custom_gradient
    def call(*tensors: tf.Tensor) -> Any:
        results = forward(tensors)

        def grad(*gradients: Any) -> Any:
            known = [
                tf.zeros_like(result) if gradient is None else tf.convert_to_tensor(gradient)
                for result, gradient in zip(tf.nest.flatten(results), gradients)
            ]
            return backward(results, known)

        return results, grad

    results = call(*inputs)
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _for_each_type(
    tensors: Sequence[tf.Tensor], name: str | None, call: Callable[[list[tf.Tensor], str | None], list[tf.Tensor]]
) -> list[tf.Tensor]:
    """An operation takes tensors of one type. call: gets those of each type, and their name."""
    places: dict[tf.DType, list[int]] = {}
    for place, tensor in enumerate(tensors):
        places.setdefault(tensor.dtype, []).append(place)
    results: list[Any] = [None] * len(tensors)
    for dtype, same in places.items():
        own_name = name if len(places) == 1 or name is None else f"{name}_{dtype.name}"
        for place, result in zip(same, call([tensors[place] for place in same], own_name)):
            results[place] = result
    return results


def reduce_together(
    tensors: Sequence[tf.Tensor], name: str | None, op: _Op, prescale: float = 1.0, postscale: float = 1.0,
    process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
) -> list[tf.Tensor]:
    """The tensors of all ranks combined. Those of one type are a group."""
    chosen = _chosen(process_set)

    def reduced(part: list[tf.Tensor], own_name: str | None) -> list[tf.Tensor]:
        def forward(inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            whole = own_name, ignore_name_scope
            return _calls.allreduce(list(inputs), whole, op.number, prescale, postscale, chosen)

        def backward(_: Any, gradients: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            return reduce_together(gradients, None, op, prescale, postscale, process_set)

        return _differentiable(forward, backward, part)

    return _for_each_type(tensors, name, reduced)


def gather_together(
    tensors: Sequence[tf.Tensor], name: str | None,
    process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
) -> list[tf.Tensor]:
    """The rows of all ranks, for each tensor."""
    chosen = _chosen(process_set)

    def gathered(part: list[tf.Tensor], own_name: str | None) -> list[tf.Tensor]:
        def forward(inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            found, rows = _calls.allgather(list(inputs), (own_name, ignore_name_scope), chosen)
            shapes = [_known_rows(tensor.shape, None) for tensor in part]
            return [*_with_shapes(found, shapes), *_with_shapes(rows, [tf.TensorShape([None])] * len(rows))]

        def backward(outputs: Sequence[tf.Tensor], gradients: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            averages = reduce_together(gradients[: len(part)], None, Average, process_set=process_set)
            own = rank_op() if _is_of_now(process_set) else process_set.rank()
            mine = []
            for average, rows, tensor in zip(averages, outputs[len(part) :], part):
                begin = tf.reduce_sum(rows[:own])
                one = average[begin : begin + rows[own]]
                mine.append(one if tensor.shape.rank else tf.reshape(one, []))
            return mine

        return _differentiable(forward, backward, part)[: len(part)]

    return _for_each_type(tensors, name, gathered)


def broadcast(tensor, root_rank, name=None, ignore_name_scope=False, process_set=global_process_set):
    """The elements of root_rank, which is its number in the job."""
    chosen, root = _chosen(process_set), root_in(process_set, root_rank)

    def forward(inputs: Sequence[tf.Tensor]) -> tf.Tensor:
        return _calls.broadcast(inputs[0], (name, ignore_name_scope), root, chosen)

    def backward(_: Any, gradients: Sequence[tf.Tensor]) -> tf.Tensor:
        average = reduce_together(gradients, None, Average, process_set=process_set)[0]
        if _is_of_now(process_set):
            return tf.where(tf.equal(rank_op(), root_rank), average, tf.zeros_like(average))
        if ddl.rank() == root_rank:
            return average
        with tf.control_dependencies([average]):  # zeros alone would not need it, and root would wait
            return tf.zeros_like(average)

    return _differentiable(forward, backward, tensors_of([tensor]))[0]


def allgather(tensor, name=None, ignore_name_scope=False, process_set=global_process_set):
    """The rows of all ranks, whose numbers may differ."""
    return gather_together(tensors_of([tensor]), name, process_set, ignore_name_scope)[0]


def grouped_allgather(tensors, name=None, ignore_name_scope=False, process_set=global_process_set):
    """The same for several tensors, which are handled together."""
    return gather_together(tensors_of(tensors), name, process_set, ignore_name_scope)


def alltoall(tensor, splits=None, name=None, ignore_name_scope=False, process_set=global_process_set):
    """splits[r] rows go to each rank r; None: equal parts. Returns the rows that came, and, if there are splits, how
    many came from each rank."""
    chosen = _chosen(process_set)
    value = tf.convert_to_tensor(tensor)
    parts = tf.zeros([0], tf.int32) if splits is None else tf.cast(tf.convert_to_tensor(splits), tf.int32)
    shapes = [_known_rows(value.shape, None), tf.TensorShape([None])]

    def forward(inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return _with_shapes(_calls.alltoall(inputs[0], parts, (name, ignore_name_scope), chosen), shapes)

    def backward(outputs: Sequence[tf.Tensor], gradients: Sequence[tf.Tensor]) -> tf.Tensor:
        received, _ = alltoall(gradients[0], outputs[1], process_set=process_set)
        return received

    received, received_splits = _differentiable(forward, backward, [value])
    return received if splits is None else (received, received_splits)


def scatter_together(
    tensors: Sequence[tf.Tensor], name: str | None, op: _Op, prescale: float = 1.0, postscale: float = 1.0,
    process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
) -> list[tf.Tensor]:
    """The tensors of all ranks combined, of which each rank gets rows; the first ranks may get one more."""
    if op not in (Average, Sum):
        raise NotImplementedError(f"a reducescatter has Average and Sum, not {op}")
    chosen = _chosen(process_set)
    size, own = process_set.size(), process_set.rank()

    if any(tensor.shape.rank == 0 for tensor in tensors):
        raise ValueError("a reducescatter takes tensors with rows, not scalars")

    def shape_of(tensor: tf.Tensor) -> tf.TensorShape:
        rows = None if tensor.shape.rank is None or _is_of_now(process_set) else tensor.shape[0]
        return _known_rows(tensor.shape, None if rows is None else rows // size + (own < rows % size))

    def scattered(part: list[tf.Tensor], own_name: str | None) -> list[tf.Tensor]:
        def forward(inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            whole = own_name, ignore_name_scope
            found = _calls.reducescatter(list(inputs), whole, op.number, prescale, postscale, chosen)
            return _with_shapes(found, [shape_of(tensor) for tensor in part])

        def backward(_: Any, gradients: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            factor = prescale * postscale
            scaled = [one if factor == 1 else one * tf.cast(factor, one.dtype) for one in gradients]
            if op is Sum:
                scaled = [one * size_of(process_set, one.dtype) for one in scaled]
            return gather_together(scaled, None, process_set)

        return _differentiable(forward, backward, part)

    return _for_each_type(tensors, name, scattered)


# Numbers of this process when the program runs.


def size_op(process_set_id=0, name=None):
    """How many ranks the process set has; -1: there is none with this number."""
    if process_set_id == 0:
        return _calls.number("size", name)
    one = with_id(process_set_id)
    return tf.constant(-1 if one is None else one.size(), name=name)


def process_set_included_op(process_set_id=0, name=None):
    """1 if this rank is in the process set, else 0; -1: there is none with this number."""
    one = with_id(process_set_id)
    return tf.constant(-1 if one is None else int(one.included()), name=name)


def local_size_op(name=None):
    return _calls.number("local_size", name)


def rank_op(name=None):
    return _calls.number("rank", name)


def local_rank_op(name=None):
    return _calls.number("local_rank", name)
