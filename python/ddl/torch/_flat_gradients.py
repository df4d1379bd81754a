"""The gradients of a DistributedOptimizer in buckets, each of which is one allreduce."""
from __future__ import annotations

from typing import Any

import torch

from ddl._horovod import Adasum, opened, set_of
from ddl._library import lib
from ddl._tensors import Options
from ddl.torch._buckets import MEGABYTE, Bucket, cut, say, why_not
from ddl.torch._tensors import TYPES, address
from ddl.torch.compression import Compression


class _Reduced(Bucket):
    """A bucket, and the allreduce of its gradients."""

    options: Options | None = None
    name = b""
    is_broken = False  # a gradient is sparse, so this bucket is no more after the step

    def submit(self, gradients: Any) -> None:
        # A rank on which a gradient is sparse says that it has no elements. So all ranks have found that, or it is an
        # error on all of them.
        count = 0 if self.is_broken else self.count
        if self.options is None or self.options.shape != (count,):
            # libddl does not combine large tensors of different priorities, which it would have to copy.
            scales = gradients.prescale, gradients.postscale
            self.options = Options((count,), *scales, priority=self.number, zeros_if_joined=True)
        flat, name = self.flat, self.name
        arguments = (address(flat), address(flat), count, TYPES[self.dtype], gradients.op.number)
        chosen = set_of(gradients.process_set)
        handle = self.options.submit(lib.ddl_allreduce_async, name, *arguments, process_set=chosen)
        self._call = opened(handle, lambda: None, flat, name, gradients.process_set)


class FlatGradients:
    """gradients: the optimizer's, which submits by itself those that are in no bucket."""

    def __init__(self, gradients: Any, bucket_cap_mb: float):
        self._gradients = gradients
        self._bucket_of: dict[torch.Tensor, _Reduced] = {}
        self._buckets: list[_Reduced] = []
        self._known = {one for one in gradients.names if one.requires_grad}  # when the buckets were made
        reason = None
        if gradients.compression is not Compression.none:
            reason = "they are compressed"
        elif gradients.op is Adasum:
            reason = "Adasum is of each tensor by itself"
        if reason is not None:
            say(f"gradients are in no buckets, because {reason}")
            return
        for members in self._lists(int(bucket_cap_mb * MEGABYTE)):
            bucket = _Reduced(len(self._buckets), members, [gradients.names[one] for one in members])
            bucket.name = f"allreduce.bucket.{bucket.number}.{bucket.digest()}".encode()
            self._buckets.append(bucket)
            self._bucket_of.update((one, bucket) for one in members)

    def _lists(self, most_bytes: int) -> list[list[torch.Tensor]]:
        """Of parameters, in the order in which a backward pass computes their gradients."""
        gradients = self._gradients
        order = gradients._as_on_first_rank([one for one in gradients.names if one.requires_grad])
        reasons = {one: why_not(one) for one in order}
        alone: list[torch.Tensor] = []
        groups: dict[str, list[torch.Tensor]] = {}
        for one in reversed(order):
            group = gradients.group_of.get(one)
            (alone if group is None else groups.setdefault(group[0], [])).append(one)
        lists = []
        for members in groups.values():
            if any(reasons[one] for one in members) or len({one.dtype for one in members}) > 1:
                for one in members:
                    reasons[one] = reasons[one] or "is in a group with others that cannot be in one buffer"
            else:
                lists.append(members)
        lists += cut([one for one in alone if reasons[one] is None], most_bytes)
        # The priority of a bucket is its place: those that the next forward pass needs first come last.
        places = {one: place for place, one in enumerate(reversed(order))}
        lists.sort(key=lambda members: places[members[-1]])
        for one in order:
            if reasons[one] is not None:
                say(f"the gradient of {gradients.names[one]} is in no bucket, because the parameter {reasons[one]}")
        return lists

    def submit(self, parameter: torch.Tensor) -> bool:
        """Takes a gradient that has been computed. False: it is in no bucket."""
        bucket = self._bucket_of.get(parameter)
        if bucket is None:
            if parameter.requires_grad and parameter not in self._known:
                self._known.add(parameter)
                say(f"the gradient of {self._gradients.names[parameter]} is in no bucket, because the parameter was "
                    "added or unfrozen after the optimizer was made")
            return False
        if parameter.grad is not None and parameter.grad.is_sparse:
            bucket.is_broken = True
            say(f"the gradient of {self._gradients.names[parameter]} is sparse, so those of its bucket are reduced "
                "one by one")
        if bucket.take(parameter):
            bucket.submit(self._gradients)

        def wait() -> torch.Tensor | None:
            bucket.wait()
            return bucket.result_of(parameter)

        self._gradients.open[parameter] = wait
        return True

    def break_up(self) -> None:
        """After all gradients of a step have been taken: submits those of buckets that are no more, one by one."""
        for bucket in [one for one in self._buckets if one.is_broken]:
            try:
                bucket.wait()
            except Exception:  # open has it
                continue
            self._buckets.remove(bucket)
            for parameter in bucket.parameters:
                del self._bucket_of[parameter], self._gradients.open[parameter]
                self._gradients.submit_alone(parameter)

    def begin_anew(self) -> None:
        for bucket in self._buckets:
            bucket.begin_anew()
