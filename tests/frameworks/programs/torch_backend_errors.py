"""Wrong calls over the backend "ddl", on two ranks: each raises an error of one sentence, and none of them hangs."""
import os
import re
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

os.environ.setdefault("USE_LIBUV", "0")  # Debian 13 has built PyTorch without libuv
dist.init_process_group("ddl")
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.PrefixStore("errors", dist.distributed_c10d._get_default_store())
SHORT = timedelta(seconds=10)
wrong = []


def note(text):
    wrong.append(text)
    print(f"rank {rank}: {text}", file=sys.stderr, flush=True)


def fails(name, kind, words, call):
    begin = time.monotonic()
    try:
        call()
        note(f"{name}: no error was raised")
    except Exception as error:
        if not isinstance(error, kind) or not re.search(words, str(error)) or "\n" in str(error).strip():
            note(f"{name}: {type(error).__name__}: {error}")
    if time.monotonic() - begin > 60:
        note(f"{name}: it took more than 60 s")


def holds(name, is_so):
    if not is_so:
        note(f"{name} is not so")


def sums(tensor, wanted):
    dist.all_reduce(tensor)
    return torch.equal(tensor.to_dense() if tensor.is_sparse else tensor, wanted)


# What works, though it is unusual.
holds("the sum of no elements", sums(torch.empty(0, 3), torch.empty(0, 3)))
holds("the sum of a transposed tensor", sums(torch.arange(6.0).view(2, 3).t(), size * torch.arange(6.0).view(2, 3).t()))
holds("the sum of complex numbers", sums(torch.tensor([1 + 2j]), size * torch.tensor([1 + 2j])))
holds("the sum of sparse tensors", sums(torch.eye(4)[rank].to_sparse(), torch.eye(4)[:size].sum(0)))
flags = torch.tensor([rank == 0, False])
dist.broadcast(flags, 0)
holds("a broadcast of bool", flags.tolist() == [True, False])

# Tensors that cannot be combined.
fails("a sum of bool", ValueError, "bool", lambda: dist.all_reduce(torch.ones(2, dtype=torch.bool)))
fails("a tensor without memory", ValueError, "meta", lambda: dist.all_reduce(torch.ones(2, device="meta")))
fails("a maximum of sparse tensors", ValueError, "sparse",
      lambda: dist.all_reduce(torch.eye(2).to_sparse(), dist.ReduceOp.MAX))
fails("a sum of quantized numbers", ValueError, "qint8|quint8",
      lambda: dist.all_reduce(torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)))
fails("too few outputs", (ValueError, RuntimeError), "2", lambda: dist.all_gather([torch.ones(1)], torch.ones(1)))
fails("splits of another sum", (ValueError, RuntimeError), "[Ss]plit",
      lambda: dist.all_to_all_single(torch.ones(2), torch.ones(2), [1, 1], [5, 1]))
# Tensors that differ between ranks. What was wrong does not end the group.
fails("other sizes", dist.DistBackendError, "rank 1", lambda: dist.all_reduce(torch.ones(rank + 1)))
fails("other types", dist.DistBackendError, "rank 1",
      lambda: dist.all_reduce(torch.ones(2, dtype=[torch.float32, torch.int32][rank])))
holds("a sum after the errors", sums(torch.ones(2), size * torch.ones(2)))

# Groups.
group, late = dist.new_group([0, 1]), dist.new_group([0, 1], SHORT)
dist.destroy_process_group(group)
fails("a call after the end", (RuntimeError, ValueError), "destroyed", lambda: group.allreduce([torch.ones(1)]).wait())
if rank == 0:
    fails("a group that rank 1 does not make", dist.DistBackendError, "rank 1",
          lambda: dist.new_group([0, 1], SHORT, use_local_synchronization=True))
    store.set("made", "")
store.wait(["made"], timedelta(minutes=2))
holds("a sum after that", sums(torch.ones(2), size * torch.ones(2)))
if rank == 0:
    fails("a call that rank 1 does not make", dist.DistBackendError, "rank 1",
          lambda: dist.all_reduce(torch.ones(1), group=late))
    store.set("waited", "")
store.wait(["waited"], timedelta(minutes=2))
print(f"rank {rank}: {len(wrong)} wrong" if wrong else f"rank {rank}: right", flush=True)
sys.stdout.flush()
os._exit(bool(wrong))  # the job was ended by the last call, so that there is nothing to leave
