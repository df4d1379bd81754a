"""Variables of all ranks, with the values of one."""
from __future__ import annotations

from typing import Any, Iterable

import numpy

import ddl
from ddl._horovod import ProcessSet, broadcast_object, global_process_set, named, raise_on_all, root_in, set_of
from ddl._tensors import broadcast_async
from ddl.errors import Mismatch
from ddl.keras._kinds import name_of, value_of


def broadcast_variables(
    variables: Iterable[Any], root_rank: int = 0, process_set: ProcessSet = global_process_set
) -> None:
    """The variables, of Keras or of TensorFlow, get root's values. Collective, outside of compiled functions."""
    variables = list(variables)
    arrays = [numpy.array(value_of(variable)) for variable in variables]
    _check_alike(variables, arrays, root_rank, process_set)
    call = named("variables", None, process_set).decode()
    options = dict(root=root_in(process_set, root_rank), process_set=set_of(process_set))
    handles = []
    for i, (variable, array) in enumerate(zip(variables, arrays)):
        # Bytes, as a broadcast computes nothing and NumPy's types are not libddl's.
        flat = numpy.atleast_1d(array).reshape(-1).view(numpy.uint8)
        handles.append(broadcast_async(flat, f"broadcast.{call}.{i}.{name_of(variable)}", **options))
    for handle in handles:
        handle.wait()
    if ddl.rank() != root_rank:
        for variable, array in zip(variables, arrays):
            variable.assign(array)


def _check_alike(
    variables: list[Any], arrays: list[numpy.ndarray], root_rank: int, process_set: ProcessSet
) -> None:
    """Raises on all ranks if a variable has another shape or type than on root, or is not there."""
    own = [(array.shape, str(array.dtype)) for array in arrays]
    theirs = broadcast_object(own, root_rank, process_set=process_set)
    problem = None
    if len(own) != len(theirs):
        problem = f"rank {ddl.rank()} has {len(own)} variables and rank {root_rank} has {len(theirs)}"
    for variable, here, there in zip(variables, own, theirs):
        if here != there and problem is None:
            problem = (
                f"variable {name_of(variable)} is {here[1]} of shape {here[0]} on rank {ddl.rank()} "
                f"and {there[1]} of shape {there[0]} on rank {root_rank}"
            )
    raise_on_all(Mismatch(f"{problem}; make the models alike on all ranks") if problem else None, process_set)
