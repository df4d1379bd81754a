"""Gradients of all ranks combined: what tapes and optimizers share."""
from __future__ import annotations

import warnings
from typing import Any, Iterable, Sequence

import tensorflow as tf

from ddl._horovod import Average, ProcessSet, _Op, global_process_set, has_others, op_of
from ddl.tensorflow._module import operations
from ddl.tensorflow._ops import size_of
from ddl.tensorflow._reductions import grouped_allreduce
from ddl.tensorflow.compression import Compression


def identity_of(variable: Any) -> Any:
    """What stands for a variable in a set. Variables of Keras 3 have no ref()."""
    return variable.ref() if hasattr(variable, "ref") else id(variable)


def cut(items: Sequence[Any], parts: int) -> list[list[Any]]:
    """Runs of nearly the same length, of which the first are the longer ones; none is empty."""
    whole, more = divmod(len(items), parts)
    ends = [(part + 1) * whole + min(part + 1, more) for part in range(parts)]
    return [list(items[begin:end]) for begin, end in zip([0, *ends], ends) if end > begin]


# Operations by which gradients are clipped, scaled or added up.
_OF_CLIPPING = frozenset(
    "AddN AddV2 Cast Identity IdentityN Maximum Minimum Mul Neg RealDiv SelectV2 Sub UnsortedSegmentSum".split()
)


def _is_reduced(gradient: Any) -> bool:
    """Whether it has been combined, or, in a graph, is what clipping has made of such a one. An eager tensor does not
    tell of what it has been made."""
    waiting, seen = [_values_of(gradient)], set()
    while waiting:
        one = waiting.pop()
        if getattr(one, "_ddl_reduced", False):
            return True
        operation = None if tf.executing_eagerly() else getattr(one, "op", None)
        if operation is not None and operation.type in _OF_CLIPPING and operation.name not in seen:
            seen.add(operation.name)
            waiting.extend(operation.inputs)
    return False


def _values_of(gradient: Any) -> Any:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


class Reduction:
    """Combines the gradients of a step. Every rank of the process set gives gradients of the same variables.

    num_groups, groups: gradients that are combined together: a number of groups, or lists of variables.
    scale_local_gradients: those of local variables, which are not combined, are divided by the number of ranks, as the
    averages of the others are.
    """

    def __init__(
        self, name: str = "Distributed", device_dense: str = "", device_sparse: str = "",
        compression: Any = Compression.none, sparse_as_dense: bool = False, op: _Op = Average,
        gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Any = None,
        process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True,
    ):
        if gradient_predivide_factor != 1.0 and op is not Average:
            raise ValueError("gradient_predivide_factor is for op=Average alone")
        if num_groups:
            warnings.warn("num_groups is an old name for groups", DeprecationWarning, stacklevel=3)
            groups = num_groups if groups is None else groups
        if groups is not None and not (isinstance(groups, list) or (isinstance(groups, int) and groups >= 0)):
            raise ValueError("groups is a number that is not negative, or a list of lists of variables")
        self.name, self.process_set = name, process_set
        self._sparse_as_dense, self._groups, self._scales_local = sparse_as_dense, groups, scale_local_gradients
        predivide = float(gradient_predivide_factor)
        self._how = dict(
            device_dense=device_dense, device_sparse=device_sparse, compression=compression, op=op_of(None, op),
            process_set=process_set,
        )
        self._scales = dict(prescale_factor=1.0 / predivide, postscale_factor=predivide)
        self._local: set[Any] = set()

    def register_local(self, variable: Any) -> None:
        """This variable's gradients are this rank's own."""
        self._local.add(identity_of(variable))

    def is_local(self, variable: Any) -> bool:
        return identity_of(variable) in self._local

    def is_needed(self) -> bool:
        """Whether there are other ranks to combine gradients with."""
        if self.process_set.included() is None:
            raise ValueError("Horovod has not been initialized; use hvd.init().")
        return has_others(self.process_set)

    def __call__(
        self, gradients: Sequence[Any], variables: Sequence[Any] | None = None, use_generic_names: bool = False
    ) -> list[Any]:
        """The combined gradients, None where there is none. variables: whose they are."""
        results = list(gradients)
        if variables is None:
            variables = [None] * len(results)
        if not self.is_needed():
            return results
        self._refuse_reduced(results, variables)
        mine = [place for place, one in enumerate(variables) if one is not None and self.is_local(one)]
        for place in mine:
            results[place] = self._scaled(results[place])
        places = [place for place, one in enumerate(results) if one is not None and place not in mine]
        if self._sparse_as_dense:
            for place in places:
                results[place] = tf.convert_to_tensor(results[place])
        with tf.name_scope(f"{self.name}_Allreduce"):
            for number, group in enumerate(self._grouped(places, variables, results)):
                name = f"grad_{number}" if use_generic_names else self._name_of(group, variables)
                given = [results[place] for place in group]
                scales = {} if isinstance(given[0], tf.IndexedSlices) else self._scales
                how = dict(self._how, **scales, name=name, ignore_name_scope=use_generic_names)
                reduced = grouped_allreduce(given, **how)
                for place, one in zip(group, reduced):
                    results[place] = _marked(one)
        return results

    def _scaled(self, gradient: Any) -> Any:
        if gradient is None or not self._scales_local:
            return gradient
        if isinstance(gradient, tf.IndexedSlices):
            values = gradient.values / size_of(self.process_set, gradient.values.dtype)
            return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
        return gradient / size_of(self.process_set, gradient.dtype)

    def _refuse_reduced(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        for gradient, variable in zip(gradients, variables):
            if _is_reduced(gradient):
                raise ValueError(
                    f"the gradient of {getattr(variable, 'name', 'a variable')} has been combined over the ranks; use "
                    "a DistributedGradientTape or a DistributedOptimizer, not both"
                )

    def _name_of(self, group: Sequence[int], variables: Sequence[Any]) -> str | None:
        """Of the first variable, for messages."""
        name = getattr(variables[group[0]], "path", None) or getattr(variables[group[0]], "name", None)
        return name and name.split(":")[0]

    def _grouped(self, places: list[int], variables: Sequence[Any], gradients: Sequence[Any]) -> Iterable[list[int]]:
        """Gradients that are one call. Alone, one is on its way while others are computed; but eager operations, and
        the functions of Python, wait for each call."""
        sparse = [place for place in places if isinstance(gradients[place], tf.IndexedSlices)]
        dense = [place for place in places if place not in sparse]
        if isinstance(self._groups, list):
            for group in self._groups:
                members = {identity_of(variable) for variable in group}
                chosen = [place for place in dense if identity_of(variables[place]) in members]
                dense = [place for place in dense if place not in chosen]
                if chosen:
                    yield chosen
            yield from ([place] for place in dense)
        elif self._groups:
            yield from cut(dense, self._groups)
        elif tf.executing_eagerly() or operations is None:
            yield from [dense] if dense else []
        else:
            yield from ([place] for place in dense)
        yield from ([place] for place in sparse)


def _marked(gradient: Any) -> Any:
    """So that it is not combined a second time."""
    _values_of(gradient)._ddl_reduced = True
    return gradient
