"""Gradients of PyTorch and JAX, which have no sparse ones in Keras: all of a step are submitted in groups."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ddl._horovod import has_others, set_of
from ddl.keras._gradients import Options
from ddl.keras._kinds import name_of

# (gradients, the group's name, op, prescale, postscale, process_set) -> what waits, and returns the combined ones
Start = Callable[..., Callable[[], Sequence[Any]]]


class Reduction:
    def __init__(self, options: Options, compression: Any, start: Start):
        self._options = options
        self._compression = options.compression or compression
        self._start = start
        self._local: dict[int, Any] = {}
        if options.process_set.included() is None:
            set_of(options.process_set)  # says what is missing

    @property
    def keeps_size(self) -> bool:
        """Whether a step that is compiled would divide by the number of ranks that there were at that time."""
        return bool(self._local) and self._options.scale_local_gradients

    def add_local(self, variable: Any) -> None:
        self._local[id(variable)] = variable

    def __call__(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        options, results = self._options, list(gradients)
        if not has_others(options.process_set):  # a rank outside of the set trains by itself
            return results
        size = options.process_set.size()
        shared = []
        for i, (gradient, variable) in enumerate(zip(gradients, variables)):
            if gradient is not None and id(variable) not in self._local:
                shared.append(i)
            elif gradient is not None and options.scale_local_gradients:
                results[i] = gradient / size
        waiting = [(group, self._started(number, group, gradients, variables))
                   for number, group in enumerate(self._groups(shared, variables))]
        for group, finish in waiting:
            for i, gradient in zip(group, finish()):
                results[i] = gradient
        return results

    def _started(self, number: int, group: list[int], gradients: Sequence[Any], variables: Sequence[Any]) -> Any:
        options, factor = self._options, self._options.gradient_predivide_factor
        small, kept = zip(*(self._compression.compress(gradients[i]) for i in group))
        name = f"{options.name or 'keras'}.{number}." + name_of(variables[group[0]])
        finish = self._start(list(small), name, options.op, 1 / factor, factor, options.process_set)
        return lambda: [self._compression.decompress(*pair) for pair in zip(finish(), kept)]

    def _groups(self, shared: list[int], variables: Sequence[Any]) -> list[list[int]]:
        """Runs of near-equal length, or the given lists and each of the others by itself; one group if not asked."""
        if not shared:
            return []
        groups = self._options.groups
        if groups is None:
            count = min(max(self._options.num_groups, 1), len(shared))
            share, more = divmod(len(shared), count)
            ends = [i * share + min(i, more) for i in range(count + 1)]
            return [shared[begin:end] for begin, end in zip(ends, ends[1:])]
        number = {id(variable): i for i, group in enumerate(groups) for variable in group}
        lists: dict[Any, list[int]] = {}
        for i in shared:
            lists.setdefault(number.get(id(variables[i]), ("alone", i)), []).append(i)
        return list(lists.values())

