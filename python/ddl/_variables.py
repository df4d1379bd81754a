"""Variables of a framework, by arrays of NumPy: the values of one rank on all, and states of elastic jobs."""
from __future__ import annotations

import re
from typing import Any, Sequence

import numpy

import ddl
from ddl._horovod import ProcessSet, broadcast_object, global_process_set, named, raise_on_all, root_in, set_of
from ddl._tensors import broadcast_async
from ddl.elastic import ObjectState
from ddl.errors import Mismatch


def broadcast_arrays(
    arrays: Sequence[numpy.ndarray], names: Sequence[str], root_rank: int = 0,
    process_set: ProcessSet = global_process_set,
) -> None:
    """The arrays get root's values. names: of the variables that they are copies of. Collective."""
    _check_alike(arrays, names, root_rank, process_set)
    call = named("variables", None, process_set).decode()
    options = dict(root=root_in(process_set, root_rank), process_set=set_of(process_set))
    handles = []
    for i, (array, name) in enumerate(zip(arrays, names)):
        # Bytes, as a broadcast computes nothing and NumPy's types are not libddl's.
        flat = numpy.atleast_1d(array).reshape(-1).view(numpy.uint8)
        handles.append(broadcast_async(flat, f"broadcast.{call}.{i}.{name}", **options))
    for handle in handles:
        handle.wait()


def _check_alike(
    arrays: Sequence[numpy.ndarray], names: Sequence[str], root_rank: int, process_set: ProcessSet
) -> None:
    """Raises on all ranks if a variable has another shape or type than on root, or is not there."""
    own = [(array.shape, str(array.dtype)) for array in arrays]
    theirs = broadcast_object(own, root_rank, process_set=process_set)
    problem = None
    if len(own) != len(theirs):
        problem = f"rank {ddl.rank()} has {len(own)} variables and rank {root_rank} has {len(theirs)}"
    for name, here, there in zip(names, own, theirs):
        if here != there and problem is None:
            problem = (
                f"variable {name} is {here[1]} of shape {here[0]} on rank {ddl.rank()} "
                f"and {there[1]} of shape {there[0]} on rank {root_rank}"
            )
    raise_on_all(Mismatch(f"{problem}; make the models alike on all ranks") if problem else None, process_set)


class VariablesState(ObjectState):
    """Variables of a framework, whose copies lie in the host's memory, and values by names, which become attributes.

    A class that derives from it says which variables they are, and how they are read and written. A file for the next
    job has what all ranks have alike; variables of a rank alone are then those that its program has made.
    """

    def _variables(self) -> list[Any]:
        """Those that all ranks have alike."""
        raise NotImplementedError

    def _own_variables(self) -> list[Any]:
        """Those of this rank alone, such as states of random numbers: saved and restored, but not shared."""
        return []

    def _read(self, variables: list[Any]) -> list[numpy.ndarray]:
        """Copies."""
        raise NotImplementedError

    def _write(self, variables: list[Any], arrays: list[numpy.ndarray]) -> None:
        raise NotImplementedError

    def _name(self, variable: Any) -> str:
        return str(variable.name)

    def save(self) -> None:
        # Reading may raise what has failed in a step. Then the copy is still that of the commit before.
        arrays = self._read(self._variables() + self._own_variables())
        super().save()
        self._arrays = arrays

    def restore(self) -> None:
        self._write(self._variables() + self._own_variables(), self._arrays)
        super().restore()

    def sync(self, root_rank: int = 0) -> None:
        variables = self._variables()
        arrays = self._read(variables)
        broadcast_arrays(arrays, [self._name(one) for one in variables], root_rank)
        if ddl.rank() != root_rank:
            self._write(variables, arrays)
        super().sync(root_rank)

    def saved(self) -> Any:
        return super().saved(), self._arrays[: len(self._variables())]

    def take(self, saved: Any) -> None:
        values, arrays = saved
        super().take(values)
        self._write(self._variables(), arrays)
        self._arrays[: len(arrays)] = arrays

    def _layout(self) -> list[str]:
        lines = super()._layout()
        for place, one in enumerate(self._variables()):
            # A framework counts equal names, from another number on in a process that has made other models before.
            name = re.sub(r"_\d+(?=[/:]|$)", "", self._name(one))
            dtype = getattr(one.dtype, "name", one.dtype)
            lines.append(f"variable {place}, {name}: {dtype} {[int(length) for length in one.shape]}")
        return lines
