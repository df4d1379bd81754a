"""What C++ does with a group reaches libddl: each functional collective, and DistributedDataParallel. Of a group whose
devices have several backends, those of CPUs do, or PyTorch is too old for such a group, and that is said."""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

import ddl.torch.process_group
from ddl.torch.distributed.collectives import Collectives
from ddl.torch.distributed.versions import calls_backends

os.environ.setdefault("USE_LIBUV", "0")  # Debian 13 has built PyTorch without libuv
dist.init_process_group("ddl")
rank, size = dist.get_rank(), dist.get_world_size()
reached, wrong = [], []


def noted(name, method):
    def call(*arguments):
        reached.append(name)
        return method(*arguments)

    return call


for name in ("allreduce", "allreduce_all", "allgather_single", "reduce_scatter", "alltoall", "broadcast"):
    setattr(Collectives, name, noted(name, getattr(Collectives, name)))


def reaches(name, wanted, call):
    """Whether the call makes this one of libddl, and gives these numbers."""
    reached.clear()
    result = call() + 0  # which waits
    if name not in reached or not torch.equal(result, torch.tensor(wanted)):
        wrong.append(name)
        print(f"rank {rank}: {name}: {result}, by {reached}", file=sys.stderr, flush=True)


def backward():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    reached.clear()
    model(torch.full((1, 1), rank + 1.0)).sum().backward()
    return model.module.weight.grad.flatten()


group, own = dist.group.WORLD, torch.tensor([rank + 1.0] * 2)
reaches("allreduce", [3.0, 3.0], lambda: functional.all_reduce(own, "sum", group))
reaches("allreduce_all", [6.0, 6.0], lambda: sum(functional.all_reduce_coalesced([own, own], "sum", group)))
reaches("allgather_single", [1.0, 1.0, 2.0, 2.0], lambda: functional.all_gather_tensor(own, 0, group))
reaches("reduce_scatter", [3.0], lambda: functional.reduce_scatter_tensor(own, "sum", 0, group))
reaches("alltoall", [1.0, 2.0], lambda: functional.all_to_all_single(own, [1, 1], [1, 1], group))
reaches("broadcast", [2.0, 2.0], lambda: functional.broadcast(own, 1, group))
reaches("allreduce", [1.5], backward)
try:
    several = dist.new_group(backend="cpu:ddl,cuda:gloo")
    reaches("allreduce", [3.0, 3.0], lambda: dist.all_reduce(own, group=several) or own)
    is_right = calls_backends()
except ValueError as error:
    is_right = not calls_backends() and "some devices" in str(error)
wrong += [] if is_right else ["several"]
print(f"rank {rank}: {len(wrong)} wrong" if wrong else f"rank {rank}: right", flush=True)
dist.destroy_process_group()
sys.exit(bool(wrong))
