"""The collectives as functions of JAX, with gradients."""
from __future__ import annotations

import functools
from typing import Any, NamedTuple, Sequence

import jax
import jax.numpy as jnp

import ddl
from ddl._context import AVERAGE, MAX, SUM, ProcessSet, world
from ddl._tensors import numbered
from ddl.jax._handlers import collective

_HAVE_GRADIENTS = (SUM, AVERAGE)


class _How(NamedTuple):
    """What a call is told beside its arrays: all that is known when it is traced."""

    kind: str
    name: str
    number: str  # of a call without a name
    process_set: int
    ranks: int
    rank: int  # in the process set
    op: int = SUM
    root: int = 0
    prescale: float = 1.0
    postscale: float = 1.0
    rows: tuple[int, ...] = ()  # of an allgather, by rank

    def of_gradient(self, kind: str, **changes: Any) -> _How:
        number = f"{self.number}.gradient" if self.number else ""
        name = self.name if self.number else f"{self.name}.gradient"
        plain = dict(op=SUM, root=0, prescale=1.0, postscale=1.0, rows=())
        return self._replace(**{**plain, "kind": kind, "name": name, "number": number, **changes})


def _how(kind: str, name: str | None, process_set: ProcessSet, **more: Any) -> _How:
    rank, ranks = process_set.rank, process_set.size
    if rank is None or ranks is None:
        raise ddl.InvalidArgument(f"rank {ddl.rank()} is not in {process_set}")
    number = "" if name is not None else numbered(f"jax.{kind}", process_set)
    whole = f"jax.{kind}.{'noname' if name is None else name}"
    return _How(kind, whole, number, process_set.number, ranks, rank, **more)


def _bind(how: _How, arrays: Sequence[Any], shapes: Any = None) -> list[Any]:
    attributes = {key: getattr(how, key) for key in ("op", "root", "process_set", "prescale", "postscale")}
    return collective.bind(
        *arrays, kind=how.kind, name=how.name, number=how.number, shapes=shapes, **attributes
    )


def _array(value: Any, kind: str) -> Any:
    array = jnp.asarray(value)
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise TypeError(f"{kind}() takes no complex numbers; give real and imaginary part (jnp.real, jnp.imag)")
    return array


def _rows(array: Any, kind: str) -> int:
    if not array.ndim:
        raise ValueError(f"{kind}() needs an array with rows, not a number; give x[None]")
    return array.shape[0]


# Gradients are those of ddl.torch, which are Horovod's: of the sum of all ranks' losses for an allreduce, else of their
# mean.

_differentiable = functools.partial(jax.custom_vjp, nondiff_argnums=(0,))


def _without_residual(function: Any, backward: Any) -> None:
    function.defvjp(lambda how, *arrays: (function(how, *arrays), None), backward)


@_differentiable
def _allreduce(how: _How, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_bind(how, arrays))


def _allreduce_backward(how: _How, _: None, gradients: tuple[Any, ...]) -> tuple[tuple[Any, ...]]:
    if how.op not in _HAVE_GRADIENTS:
        raise NotImplementedError(
            "only the allreduce with SUM and with AVERAGE has a gradient; use jax.lax.stop_gradient for others"
        )
    own = how.of_gradient("allreduce", op=how.op, prescale=how.prescale, postscale=how.postscale)
    return (_of_floats(gradients, lambda some: _allreduce(own, some)),)


def _of_floats(gradients: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
    """The function of those gradients that are numbers; integers have none."""
    places = [i for i, one in enumerate(gradients) if one.dtype != jax.dtypes.float0]
    results = list(gradients)
    for i, one in zip(places, function(tuple(gradients[i] for i in places)) if places else ()):
        results[i] = one
    return tuple(results)


_without_residual(_allreduce, _allreduce_backward)


@_differentiable
def _broadcast(how: _How, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_bind(how, arrays))


def _broadcast_backward(how: _How, _: None, gradients: tuple[Any, ...]) -> tuple[tuple[Any, ...]]:
    def average(some: tuple[Any, ...]) -> tuple[Any, ...]:
        averages = _allreduce(how.of_gradient("allreduce", op=AVERAGE), some)
        # Of a result that is not used JAX leaves out the call, for which root would wait.
        is_root = jnp.asarray(how.rank == how.root)
        return tuple(jnp.where(is_root, one, jnp.zeros_like(one)) for one in averages)

    return (_of_floats(gradients, average),)


_without_residual(_broadcast, _broadcast_backward)


@_differentiable
def _allgather(how: _How, array: Any) -> Any:
    return _bind(how, [array], ((sum(how.rows), *array.shape[1:]),))[0]


def _allgather_backward(how: _How, _: None, gradient: Any) -> tuple[Any]:
    def own(some: tuple[Any, ...]) -> tuple[Any]:
        begin = sum(how.rows[: how.rank])
        average = _allreduce(how.of_gradient("allreduce", op=AVERAGE), some)[0]
        return (average[begin : begin + how.rows[how.rank]],)

    return _of_floats((gradient,), own)


_without_residual(_allgather, _allgather_backward)


@_differentiable
def _alltoall(how: _How, array: Any) -> Any:
    return _bind(how, [array])[0]


def _alltoall_backward(how: _How, _: None, gradient: Any) -> tuple[Any]:
    return _of_floats((gradient,), lambda some: (_alltoall(how.of_gradient("alltoall"), some[0]),))


_without_residual(_alltoall, _alltoall_backward)


@_differentiable
def _reduce_scatter(how: _How, array: Any) -> Any:
    return _bind(how, [array], ((how.rows[how.rank], *array.shape[1:]),))[0]


def _reduce_scatter_backward(how: _How, _: None, gradient: Any) -> tuple[Any]:
    if how.op not in _HAVE_GRADIENTS:
        raise NotImplementedError("only the reduce_scatter with SUM and with AVERAGE has a gradient")
    scale = how.prescale * how.postscale * (1.0 if how.op == AVERAGE else float(how.ranks))
    gather = how.of_gradient("allgather", rows=how.rows)
    return _of_floats((gradient,), lambda some: (_allgather(gather, some[0]) * jnp.asarray(scale, gradient.dtype),))


_without_residual(_reduce_scatter, _reduce_scatter_backward)


# What programs call. name: the same on every rank; None: numbered in the order in which calls are traced, which is then
# the same on every rank.


def allreduce(
    array: Any, op: int = SUM, *, name: str | None = None,
    prescale: float = 1.0, postscale: float = 1.0, process_set: ProcessSet = world,
) -> Any:
    """The ranks' arrays combined, element by element: the same bits on every rank."""
    how = _how("allreduce", name, process_set, op=op, prescale=float(prescale), postscale=float(postscale))
    return _allreduce(how, (_array(array, "allreduce"),))[0]


def grouped_allreduce(
    tree: Any, op: int = SUM, *, name: str | None = None,
    prescale: float = 1.0, postscale: float = 1.0, process_set: ProcessSet = world,
) -> Any:
    """The same for all arrays of a pytree, in one call."""
    leaves, structure = jax.tree.flatten(tree)
    if not leaves:
        return tree
    how = _how("allreduce", name, process_set, op=op, prescale=float(prescale), postscale=float(postscale))
    arrays = tuple(_array(leaf, "grouped_allreduce") for leaf in leaves)
    return jax.tree.unflatten(structure, _allreduce(how, arrays))


def average_gradients(tree: Any, *, name: str | None = None, process_set: ProcessSet = world) -> Any:
    """The means of all ranks' gradients: what a step of data-parallel training gives to its optimizer."""
    return grouped_allreduce(tree, AVERAGE, name=name, process_set=process_set)


def broadcast(tree: Any, root: int = 0, *, name: str | None = None, process_set: ProcessSet = world) -> Any:
    """Root's arrays, on every rank, of a pytree that has the same shapes everywhere. root: its rank in the set."""
    leaves, structure = jax.tree.flatten(tree)
    if not leaves:
        return tree
    how = _how("broadcast", name, process_set, root=int(root))
    arrays = tuple(_array(leaf, "broadcast") for leaf in leaves)
    return jax.tree.unflatten(structure, _broadcast(how, arrays))


def allgather(
    array: Any, *, rows: Sequence[int] | None = None, name: str | None = None, process_set: ProcessSet = world
) -> Any:
    """Every rank's array, one after the other along the first dimension.

    rows: how many rows each rank gives; None: all give as many as this one.
    """
    array = _array(array, "allgather")
    own = _rows(array, "allgather")
    how = _how("allgather", name, process_set)
    all_rows = (own,) * how.ranks if rows is None else tuple(int(one) for one in rows)
    if len(all_rows) != how.ranks or all_rows[how.rank] != own:
        raise ValueError(f"rows must be {how.ranks} numbers, of which that of rank {how.rank} is {own}; it is {rows}")
    return _allgather(how._replace(rows=all_rows), array)


def alltoall(array: Any, *, name: str | None = None, process_set: ProcessSet = world) -> Any:
    """The r-th part of the rows goes to rank r, whose part comes as the r-th of the result. Parts are equal."""
    array = _array(array, "alltoall")
    rows = _rows(array, "alltoall")
    how = _how("alltoall", name, process_set)
    if rows % how.ranks:
        raise ValueError(f"{rows} rows are no {how.ranks} equal parts")
    return _alltoall(how, array)


def reduce_scatter(
    array: Any, op: int = SUM, *, name: str | None = None,
    prescale: float = 1.0, postscale: float = 1.0, process_set: ProcessSet = world,
) -> Any:
    """The ranks' arrays combined, of which each rank gets its part of the rows; the first ranks get one more, if they
    are no equal parts."""
    array = _array(array, "reduce_scatter")
    rows = _rows(array, "reduce_scatter")
    how = _how("reduce_scatter", name, process_set, op=op, prescale=float(prescale), postscale=float(postscale))
    parts = tuple(rows // how.ranks + (rank < rows % how.ranks) for rank in range(how.ranks))
    return _reduce_scatter(how._replace(rows=parts), array)


def barrier(tree: Any = None, *, name: str | None = None, process_set: ProcessSet = world) -> Any:
    """Waits for all ranks. A pytree is returned when every rank has computed its own. Without one it returns when every
    rank has called it; inside jax.jit that would order nothing, so there it takes the arrays that come after it."""
    how = _how("allreduce", name or "barrier", process_set, op=MAX)
    leaves, structure = jax.tree.flatten(tree)
    if not leaves:
        arrived = _bind(how, [jnp.zeros((), jnp.int32)])[0]
        if isinstance(arrived, jax.core.Tracer):
            raise ValueError("barrier() orders nothing inside jax.jit without arrays: x = ddl.jax.barrier(x)")
        arrived.block_until_ready()
        return tree
    return jax.tree.unflatten(structure, _after_barrier(how, tuple(leaves)))


@_differentiable
def _after_barrier(how: _How, leaves: tuple[Any, ...]) -> tuple[Any, ...]:
    *own, token = jax.lax.optimization_barrier((*leaves, jnp.zeros((), jnp.int32)))
    arrived = _bind(how, [token])[0]
    return tuple(jax.lax.optimization_barrier((*own, arrived))[:-1])


_without_residual(_after_barrier, lambda how, _, gradients: (gradients,))
