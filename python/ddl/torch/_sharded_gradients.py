"""What a sharded optimizer has: slices of buckets, which are on their way or updated, and the state of all ranks."""
from __future__ import annotations

import array
import math
import pickle
from typing import Any, Callable, Sequence

import torch

import ddl
from ddl._horovod import Average, ProcessSet, opened, set_of, synchronize
from ddl._library import ffi, lib
from ddl._objects import numbers, pickled
from ddl._tensors import Options
from ddl.torch._buckets import MEGABYTE, cut, why_not
from ddl.torch._slices import (
    SlicedBucket,
    SliceOptimizer,
    options_of,
    shard_of,
    shard_of_whole,
    values_of,
    whole_values,
)
from ddl.torch._tensors import TYPES, address
from ddl.torch.compression import Compression
from ddl.torch.optimizer import _Gradients

_CHUNK = 1 << 20  # elements of which squares are taken in double at a time
VERSION = 1  # of what shard_state_dict() gives


class _Moved(SlicedBucket):
    """A bucket, and what ranks send each other of it."""

    def begin(self, gradients: Any) -> None:
        self._gradients = gradients
        self._text = f"{self.number}.{self.digest()}"
        self._sent: int | None = None
        ranks = self.count // self.share
        self._counts = ffi.new("uint64_t[]", [self.share] * ranks)
        self._scatter_options = Options((self.count,), priority=self.number)
        # The first layers of the forward pass are in the last buckets. A rank that has joined would send zeros.
        self._send_options = Options((self.share,), priority=self.number, fails_if_joined=True)

    def scatter(self) -> None:
        """Submits the gradients, of which this rank's slice becomes the mean of all ranks'."""
        flat, name = self.flat, f"reducescatter.bucket.{self._text}".encode()
        arguments = (address(flat), address(flat[self.own]), self._counts, TYPES[self.dtype], Average.number)
        chosen = self._gradients.process_set
        handle = self._scatter_options.submit(
            lib.ddl_reduce_scatter_async, name, *arguments, process_set=set_of(chosen)
        )
        self._call = opened(handle, lambda: None, flat, name, chosen)

    def send(self) -> None:
        """Submits this rank's slice, for the parameters of all ranks."""
        name, chosen = f"allgather.slice.{self._text}".encode(), self._gradients.process_set
        arguments = (address(self.values[self.own]), address(self.values), self.share, TYPES[self.dtype])
        handle = self._send_options.submit(
            lib.ddl_allgather_async, name, *arguments, process_set=set_of(chosen)
        )
        self._sent = opened(handle, lambda: None, self.values, name, chosen)

    def receive(self) -> None:
        """Waits until the parameters have the values of the last step."""
        number, self._sent = self._sent, None
        if number is not None:
            synchronize(number)


class _Slices:
    """The buckets of an optimizer, in the place of FlatGradients, and the optimizers of this rank's slices."""

    def __init__(self, gradients: Any, optimizer: torch.optim.Optimizer, bucket_cap_mb: float):
        self._gradients, self._optimizer, self._most_bytes = gradients, optimizer, int(bucket_cap_mb * MEGABYTE)
        order = gradients._as_on_first_rank([one for one in gradients.names if one.requires_grad])
        self._order = list(reversed(order))
        for one in self._order:
            reason = why_not(one)
            if reason is None and not (one.dtype.is_floating_point and one.element_size() > 1):
                reason = f"is of {one.dtype}"
            if reason is not None and not reason.startswith("has holes"):
                raise ValueError(f"{gradients.names[one]} cannot be sharded: it {reason}")
        self.buckets: list[_Moved] = []
        self.optimizers: list[SliceOptimizer] = []
        self._of: dict[torch.Tensor, _Moved] = {}
        self.lay_out()

    def lay_out(self) -> None:
        """For the ranks that there are. The state is empty then."""
        gradients = self._gradients
        rank, ranks = (gradients.process_set.rank(), gradients.process_set.size()) if gradients.is_shared else (0, 1)
        for one in self._order:
            if not one.is_contiguous():
                one.data = one.detach().contiguous()
        lists = cut([one for one in self._order if one.numel()], self._most_bytes)
        self.buckets = [
            _Moved(number, members, [gradients.names[one] for one in members], rank, ranks)
            for number, members in enumerate(lists)
        ]
        for bucket in self.buckets:
            bucket.begin(gradients)
        self._of = {one: bucket for bucket in self.buckets for one in bucket.parameters}
        self.optimizers = [SliceOptimizer(self._optimizer, gradients.own, bucket) for bucket in self.buckets]

    # What _Gradients calls.

    def submit(self, parameter: torch.Tensor) -> bool:
        bucket = self._of.get(parameter)
        if bucket is None:
            if parameter.numel() and parameter.requires_grad:
                raise ValueError(
                    f"{self._gradients.names[parameter]} has been frozen when the optimizer was sharded; make the "
                    "optimizer anew to train it"
                )
            return True
        if parameter.grad is not None and parameter.grad.is_sparse:
            raise ValueError(
                f"the gradient of {self._gradients.names[parameter]} is sparse, and a sharded optimizer needs dense "
                "ones: make the layer with sparse=False, or use DistributedOptimizer"
            )
        self._gradients.is_synchronized = False
        if bucket.take(parameter):
            bucket.scatter()
        self._gradients.open[parameter] = bucket.wait
        return True

    def break_up(self) -> None:
        pass

    def begin_anew(self) -> None:
        for bucket in self.buckets:
            bucket.begin_anew()

    # A step.

    def update(self, waits: bool) -> None:
        shared = self._gradients.is_shared
        for one in reversed(self.optimizers):  # in the order of the forward pass
            bucket = one.bucket
            bucket.receive()  # of a step whose parameters nobody has used
            if not shared:
                self._take_alone(bucket)
            bucket.refresh_master()
            one.step(self._optimizer, lambda p: p.requires_grad and (shared or p.grad is not None))
            bucket.store_master()
            bucket.drop_gradient()
            if shared:
                bucket.send()
        if waits:
            self.receive()

    @staticmethod
    def _take_alone(bucket: _Moved) -> None:
        """Of one rank, whose gradients nobody has submitted."""
        for parameter in bucket.parameters:
            if parameter.grad is not None:
                bucket.take(parameter)
        bucket.begin_anew()
        if bucket.flat is None:
            bucket.allocate()

    def receive(self) -> None:
        failure = None
        for bucket in reversed(self.buckets):
            try:
                bucket.receive()
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def own_gradients(self) -> list[torch.Tensor]:
        """This rank's slices, combined. Zeros follow the last parameter of a bucket."""
        if not self._gradients.is_shared:
            for bucket in self.buckets:
                self._take_alone(bucket)
        return [bucket.gradient() for bucket in self.buckets]

    def receive_for(self, parameters: Sequence[torch.Tensor]) -> Callable[..., None]:
        def receive(*_: Any) -> None:
            for bucket in {id(self._of[one]): self._of[one] for one in parameters if one in self._of}.values():
                bucket.receive()

        return receive

    # State.

    def load(self, shards: list[dict[str, dict[str, Any]]]) -> None:
        """Nothing is changed if elements are missing."""
        parts: dict[str, list[dict[str, Any]]] = {}
        for shard in shards:
            for name, part in shard.items():
                parts.setdefault(name, []).append(part)
        found = []
        for one in self.optimizers:
            for piece in one.bucket.pieces:
                given = parts.get(piece.name, [])
                for part in given:
                    if tuple(part["shape"]) != tuple(piece.parameter.shape):
                        raise ValueError(
                            f"the state of {piece.name} is of the shape {list(part['shape'])}, and the parameter has "
                            f"{list(piece.parameter.shape)}"
                        )
                values = values_of(piece.name, piece.begin, piece.end, given)
                found.append((one, piece, values, any(part["values"] for part in given)))
        for one, piece, values, is_known in found:
            master = values.pop("master", None)
            if master is not None and one.bucket.master.dtype is not one.bucket.dtype:
                piece.weight.data.copy_(master)
            if values:
                one.optimizer.state[piece.weight] = values
            elif not is_known:
                one.optimizer.state.pop(piece.weight, None)


class _ShardedGradients(_Gradients):
    """The gradients and the state of a sharded optimizer."""

    def __init__(
        self, optimizer: torch.optim.Optimizer, named_parameters: Any, passes: int, process_set: ProcessSet,
        bucket_cap_mb: float, overlaps: bool,
    ):
        super().__init__(
            optimizer, named_parameters, Compression.none, passes, Average, 1.0, 0, None, False, process_set, None
        )
        self.overlaps = overlaps
        self.consolidated: dict[str, Any] | None = None
        self.flat = _Slices(self, optimizer, bucket_cap_mb)

    def begin_generation(self) -> None:
        super().begin_generation()
        self.consolidated = None
        self.flat.lay_out()

    def rank(self) -> int:
        return self.process_set.rank() if self.is_shared else 0

    def ranks(self) -> int:
        return self.process_set.size() if self.is_shared else 1

    def norm(self, kind: float) -> float:
        """Of all gradients: each rank adds the squares of its own slices, and the sums are added in rank order."""
        if kind not in (2.0, math.inf):
            raise ValueError(f"norm_type is 2 or infinity, not {kind}")
        gradients = self.flat.own_gradients()
        if kind == math.inf:
            own = max((float(one.abs().max()) for one in gradients), default=0.0)
            own = math.nan if any(one.isnan().any() for one in gradients) else own
            return ddl.allreduce(own, ddl.MAX, process_set=set_of(self.process_set)) if self.is_shared else own
        squares = 0.0
        for gradient in gradients:
            for part in gradient.split(_CHUNK):
                exact = part.double()
                squares += float(torch.dot(exact, exact))
        everyone = array.array("d", [squares] * self.ranks())
        if self.is_shared:
            ddl.allgather(array.array("d", [squares]), out=everyone, process_set=set_of(self.process_set))
        return math.sqrt(sum(everyone))

    def unscale(self, inverse: torch.Tensor) -> dict[torch.device, torch.Tensor]:
        """Multiplies the gradients; returns whether any rank has found one that is not finite. Collective."""
        found = 0.0
        for gradient in self.flat.own_gradients():
            gradient.mul_(inverse)
            found = max(found, 0.0 if bool(torch.isfinite(gradient).all()) else 1.0)
        if self.is_shared:
            found = ddl.allreduce(found, ddl.MAX, process_set=set_of(self.process_set))
        return {torch.device("cpu"): torch.tensor([found])}

    # State.

    def has_own_state(self) -> bool:
        return any(one.optimizer is not None and len(one.optimizer.state) > 0 for one in self.flat.optimizers)

    def group_options(self, optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
        return [
            {**options_of(group), "params": [self.names[one] for one in group["params"]]}
            for group in optimizer.param_groups
        ]

    def gather(self, mine: Any, to: int) -> list[Any] | None:
        """What each rank gives, on one rank, which gets one after the other."""
        if not self.is_shared:
            return [mine]
        chosen, shards, size = set_of(self.process_set), [], numbers(1)
        for one in range(self.ranks()):
            if one == to:
                shards.append(mine)
            elif self.rank() == one:
                data = pickled(mine)
                size[0] = len(data)
                ddl.send(size, to, process_set=chosen)
                ddl.send(data, to, process_set=chosen)
            elif self.rank() == to:
                ddl.recv(size, one, process_set=chosen)
                data = bytearray(size[0])
                shards.append(pickle.loads(ddl.recv(data, one, process_set=chosen)))
        return shards if self.rank() == to else None

    def whole_state(self, optimizer: torch.optim.Optimizer, shards: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
        """As an optimizer that is not sharded has it, and the names of the parameters, by number."""
        names = [self.names[one] for group in optimizer.param_groups for one in group["params"]]
        state = {}
        for number, name in enumerate(names):
            parts = [shard[name] for shard in shards if name in shard]
            values = whole_values(name, tuple(parts[0]["shape"]), parts) if parts else {}
            if values:
                state[number] = values
        groups, begin = [], 0
        for group in optimizer.param_groups:
            end = begin + len(group["params"])
            groups.append({**options_of(group), "params": list(range(begin, end))})
            begin = end
        return {"state": state, "param_groups": groups, "names": names}

    def load(self, optimizer: torch.optim.Optimizer, given: Any) -> None:
        shards = [given] if isinstance(given, dict) and "ddl_shard" in given else given
        if isinstance(shards, dict):
            parts = [self._part_of(optimizer, shards)]
            groups = shards["param_groups"]
        else:
            parts = self._parts_of(list(shards))
            groups = shards[0]["param_groups"]
        if [len(one["params"]) for one in groups] != [len(one["params"]) for one in optimizer.param_groups]:
            raise ValueError("the state is of an optimizer with other groups of parameters")
        self.consolidated = None
        self.flat.load(parts)
        for group, options in zip(optimizer.param_groups, groups):
            group.update(options_of(options))

    def _part_of(self, optimizer: torch.optim.Optimizer, whole: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Of the state of an optimizer that is not sharded. Its parameters have our numbers, unless it has names."""
        own = {self.names[one]: one for group in optimizer.param_groups for one in group["params"]}
        names = whole.get("names") or list(own)
        unknown = [name for name in names if name not in own]
        if unknown or len(names) != len(own):
            raise ValueError(
                f"the state is of {len(names)} parameters, and the optimizer has {len(own)}"
                + (f"; it has no {unknown[0]}" if unknown else "")
            )
        states = {names[number]: values for number, values in whole["state"].items()}
        return shard_of_whole(states, {name: tuple(one.shape) for name, one in own.items()})

    def _parts_of(self, shards: list[dict[str, Any]]) -> list[dict[str, dict[str, Any]]]:
        if not shards or any(one.get("ddl_shard") != VERSION for one in shards):
            raise ValueError("the state is neither that of an optimizer nor a list of what shard_state_dict() gives")
        is_own = (shards[0]["rank"], shards[0]["ranks"]) == (self.rank(), self.ranks())
        missing = sorted(set(range(shards[0]["ranks"])) - {one["rank"] for one in shards})
        if missing and not (len(shards) == 1 and is_own):
            raise ValueError(
                f"the shards of ranks {', '.join(map(str, missing))} of {shards[0]['ranks']} are missing: each rank "
                "loads a list of those of all ranks"
            )
        return [one["shards"] for one in shards]
