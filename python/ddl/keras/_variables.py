"""Variables of all ranks, with the values of one."""
from __future__ import annotations

from typing import Any, Iterable

import numpy

import ddl
from ddl._horovod import ProcessSet, global_process_set
from ddl._variables import broadcast_arrays
from ddl.keras._kinds import name_of, value_of


def broadcast_variables(
    variables: Iterable[Any], root_rank: int = 0, process_set: ProcessSet = global_process_set
) -> None:
    """The variables, of Keras or of TensorFlow, get root's values. Collective, outside of compiled functions."""
    variables = list(variables)
    arrays = [numpy.array(value_of(variable)) for variable in variables]
    broadcast_arrays(arrays, [name_of(variable) for variable in variables], root_rank, process_set)
    if ddl.rank() != root_rank:
        for variable, array in zip(variables, arrays):
            variable.assign(array)
