"""Joins and leaves 20 times: the last rounds leave no thread, no descriptor and no memory more than the first ones."""
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
os.environ.setdefault("USE_LIBUV", "0")  # Debian 13 has built PyTorch without libuv
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
store = dist.TCPStore(*address, size, rank == 0, timeout=timedelta(minutes=5))
ROUNDS, FIRST = 20, 5  # what is kept for ever is made in the first rounds
MOST_MIB = 8  # of memory that the allocator may keep


def once(number):
    dist.init_process_group("ddl", store=dist.PrefixStore(str(number), store), rank=rank, world_size=size)
    half = dist.new_group([0])
    tensor = torch.ones(1 << 18)
    work = dist.all_reduce(tensor, async_op=True)
    if rank == 0:
        dist.all_reduce(torch.ones(8), group=half)
    work.wait()
    to, source = (rank + 1) % size, (rank - 1) % size
    works = [dist.isend(tensor, to), dist.irecv(torch.empty_like(tensor), source)]
    assert all(work.wait() for work in works) and tensor[0] == size
    dist.destroy_process_group()


def now():
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    mib = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), mib


for number in range(ROUNDS):
    once(number)
    if number == FIRST - 1:
        before = now()
after = now()
wrong = [f"{name} were {old}, and are {new}" for name, old, new in zip(("threads", "descriptors"), before, after)
         if new > old]
if after[2] > before[2] + MOST_MIB:
    wrong.append(f"memory was {before[2]:.1f} MiB, and is {after[2]:.1f}")
print(f"rank {rank}: {'; '.join(wrong) or 'right'}", flush=True)
sys.exit(bool(wrong))
