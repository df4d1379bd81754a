"""Parameters of which each rank updates a part: the buckets, and the state of an optimizer, piece by piece."""
from __future__ import annotations

import inspect
import math
from typing import Any, Iterable, NamedTuple

import torch

from ddl.torch._buckets import Bucket

# Optimizers whose update of an element needs no other element, so that a part of a tensor may be updated alone.
ELEMENTWISE = {
    getattr(torch.optim, name)
    for name in ("SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop")
    if hasattr(torch.optim, name)
}
_WHY_NOT = {
    "LBFGS": "it searches along a direction of all parameters at once",
    "SparseAdam": "it is for sparse gradients, whose rows have no place in a slice",
    "Adafactor": "it needs the rows and columns of whole tensors",
    "Muon": "it needs whole matrices",
    "LARS": "it needs the norm of each whole tensor",
    "LAMB": "it needs the norm of each whole tensor",
}
_WHY_NOT["Lamb"] = _WHY_NOT["FusedLAMB"] = _WHY_NOT["LAMB"]
# State that is one number of a whole tensor, also where the tensor is one number.
_OF_TENSORS = ("step", "mu_product", "eta", "mu")
SIXTEEN_BITS = (torch.float16, torch.bfloat16)


def check_elementwise(optimizer: torch.optim.Optimizer, is_elementwise: bool) -> None:
    """Raises a ValueError with the reason if a part of a tensor cannot be updated alone."""
    kinds = [one for one in type(optimizer).__mro__ if one.__name__ in _WHY_NOT]
    if kinds:
        name = kinds[0].__name__
        raise ValueError(f"{name} cannot be sharded: {_WHY_NOT[name]}; use DistributedOptimizer")
    if type(optimizer) not in ELEMENTWISE and not is_elementwise:
        raise ValueError(
            f"{type(optimizer).__name__} is not known to treat each element of a tensor by itself; if it does, give "
            "elementwise=True, otherwise use DistributedOptimizer"
        )


class Piece(NamedTuple):
    """What this rank has of a parameter: elements begin to end, in row-major order."""

    parameter: torch.Tensor
    name: str
    begin: int
    end: int
    at: int  # of the first one, in this rank's slice of the bucket
    weight: torch.nn.Parameter  # what the rank's own optimizer updates


class SlicedBucket(Bucket):
    """A bucket whose parameters are views of a buffer, too, of which this rank updates one of equal slices.

    The slices begin at multiples of 128 bytes. What is updated are the parameters themselves; of 16-bit ones, a copy
    of 32 bits.
    """

    def __init__(self, number: int, parameters: Iterable[torch.Tensor], names: Iterable[str], rank: int, ranks: int):
        parameters = list(parameters)
        multiple = ranks * (128 // parameters[0].element_size())
        super().__init__(number, parameters, names, multiple)
        self.share = self.count // ranks
        self.own = slice(rank * self.share, (rank + 1) * self.share)
        self.values = torch.zeros(self.count, dtype=self.dtype)
        for index, parameter in enumerate(self.parameters):
            view = self.view_of(self.values, index)
            view.copy_(parameter.detach())
            parameter.data = view
        is_copy = self.dtype in SIXTEEN_BITS
        self.master = torch.zeros(self.share) if is_copy else self.values[self.own]
        self.pieces = list(self._pieces())
        self._gradient: torch.Tensor | None = None
        if is_copy:
            self.master.copy_(self.values[self.own])

    def _pieces(self) -> Iterable[Piece]:
        for parameter, name, start in zip(self.parameters, self.names, self.begins):
            begin = max(self.own.start - start, 0)
            end = min(self.own.stop - start, parameter.numel())
            if begin < end:
                at = start + begin - self.own.start
                weight = torch.nn.Parameter(self.master[at : at + end - begin])
                yield Piece(parameter, name, begin, end, at, weight)

    def gradient(self) -> torch.Tensor:
        """This rank's slice of the combined gradients, of the type in which it is updated."""
        if self._gradient is None:
            self._gradient = self.flat[self.own].to(self.master.dtype)
        return self._gradient

    def refresh_master(self) -> None:
        """Takes 16-bit parameters that the program has changed since the last step, such as by load_state_dict()."""
        if self.master.dtype is not self.dtype:
            values = self.values[self.own]
            changed = values != self.master.to(self.dtype)
            self.master.copy_(torch.where(changed, values.float(), self.master))

    def store_master(self) -> None:
        if self.master.dtype is not self.dtype:
            self.values[self.own].copy_(self.master)

    def begin_anew(self) -> None:
        super().begin_anew()
        self._gradient = None  # of a step that was skipped
        if self.flat is not None:
            self.flat[self.begins[-1] + self.parameters[-1].numel() :].zero_()  # 0, multiplied by NaN, is NaN

    def drop_gradient(self) -> None:
        """After an update."""
        self._gradient = None
        for piece in self.pieces:
            piece.weight.grad = None

    def release(self) -> None:
        self.drop_gradient()
        super().release()


class SliceOptimizer:
    """The optimizer of this rank's slice of a bucket: of the program's class, with its groups and their options."""

    def __init__(self, outer: torch.optim.Optimizer, own: type, bucket: SlicedBucket):
        self.bucket = bucket
        self.groups: list[int] = []  # by the number of the group here, that of the program
        groups = []
        for number, group in enumerate(outer.param_groups):
            members = {id(one) for one in group["params"]}
            weights = [piece.weight for piece in bucket.pieces if id(piece.parameter) in members]
            if weights:
                self.groups.append(number)
                groups.append({**options_of(group), "params": weights})
        taken = inspect.signature(own.__init__).parameters
        defaults = {name: value for name, value in outer.defaults.items() if name in taken}
        self.optimizer = own(groups, **defaults) if groups else None

    def step(self, outer: torch.optim.Optimizer, has_gradient: Any) -> None:
        """Updates the slice. has_gradient: whether a parameter is to be updated."""
        if self.optimizer is None:
            return
        gradient = self.bucket.gradient()
        for piece in self.bucket.pieces:
            part = gradient[piece.at : piece.at + piece.end - piece.begin]
            piece.weight.grad = part if has_gradient(piece.parameter) else None
        for group, number in zip(self.optimizer.param_groups, self.groups):
            group.update(options_of(outer.param_groups[number]))  # a scheduler may have changed the learning rate
        self.optimizer.step()


def options_of(group: dict[str, Any]) -> dict[str, Any]:
    """But those that name the parameters."""
    return {name: value for name, value in group.items() if name not in ("params", "param_names")}


# What is saved of the state: for each parameter, by name, the pieces that this rank or a file has.


def shard_of(slices: Iterable[SliceOptimizer]) -> dict[str, dict[str, Any]]:
    """What this rank has: of each parameter of which it has a piece, {begin, end, shape, values}."""
    found = {}
    for one in slices:
        for piece in one.bucket.pieces:
            values = dict(one.optimizer.state.get(piece.weight, {}))
            if one.bucket.master.dtype is not one.bucket.dtype:
                values["master"] = piece.weight.detach().clone()  # pickle would write all of what a view is of
            found[piece.name] = {
                "begin": piece.begin, "end": piece.end, "shape": tuple(piece.parameter.shape), "values": values,
            }
    return found


def whole(name: str, tensor: torch.Tensor, shape: tuple[int, ...]) -> bool:
    """Whether a value of a parameter's state has an element for each of the parameter's."""
    return isinstance(tensor, torch.Tensor) and tuple(tensor.shape) == shape and name not in _OF_TENSORS


def shard_of_whole(states: dict[str, dict[str, Any]], shapes: dict[str, tuple[int, ...]]) -> dict[str, dict[str, Any]]:
    """State of whole parameters, as an optimizer that is not sharded has it, as one shard that has everything."""
    found = {}
    for name, values in states.items():
        shape = shapes[name]
        for key, one in values.items():
            if isinstance(one, torch.Tensor) and one.numel() > 1 and tuple(one.shape) != shape:
                raise ValueError(
                    f"the state {key} of {name} is of the shape {list(one.shape)}, and the parameter has {list(shape)}"
                )
        flat = {key: one.reshape(-1) if whole(key, one, shape) else one for key, one in values.items()}
        found[name] = {"begin": 0, "end": math.prod(shape), "shape": shape, "values": flat}
    return found


def _is_cut(key: str, value: Any, part: dict[str, Any]) -> bool:
    return isinstance(value, torch.Tensor) and value.shape == (part["end"] - part["begin"],) and key not in _OF_TENSORS


def values_of(name: str, begin: int, end: int, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The state of a parameter's elements begin to end, of parts that may have been cut elsewhere; on the host."""
    found: dict[str, Any] = {}
    filled: dict[str, int] = {}
    for part in parts:
        low, high = max(begin, part["begin"]), min(end, part["end"])
        if low >= high:
            continue
        for key, value in part["values"].items():
            if not _is_cut(key, value, part):
                found[key] = value.clone() if isinstance(value, torch.Tensor) else value
                continue
            if key not in found:
                found[key], filled[key] = torch.empty(end - begin, dtype=value.dtype), 0
            found[key][low - begin : high - begin].copy_(value[low - part["begin"] : high - part["begin"]])
            filled[key] += high - low
    for key, count in filled.items():
        if count != end - begin:
            raise ValueError(
                f"the state {key} of {name} lacks {end - begin - count} of the elements {begin} to {end}: give the "
                "shards of all ranks that have saved it"
            )
    return found


def whole_values(name: str, shape: tuple[int, ...], parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The state of a whole parameter, with its shape."""
    count = math.prod(shape)
    values = values_of(name, 0, count, parts)
    one = {"begin": 0, "end": count}
    return {key: value.reshape(shape) if _is_cut(key, value, one) else value for key, value in values.items()}
