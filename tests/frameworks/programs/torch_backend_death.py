"""torch_backend_death.py CALL: the last rank is killed while the others wait for it. Their error must name it.

CALL is all_reduce, barrier, recv or new_group.
"""
import os
import signal
import sys

import torch
import torch.distributed as dist

# ddlrun asks the others to end; they are to say first what they have seen.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.environ.setdefault("USE_LIBUV", "0")  # Debian 13 has built PyTorch without libuv
dist.init_process_group("ddl")
rank, last = dist.get_rank(), dist.get_world_size() - 1
calls = {
    "all_reduce": lambda: dist.all_reduce(torch.ones(4)),
    "barrier": dist.barrier,
    "recv": lambda: dist.recv(torch.ones(4), last),
    "new_group": lambda: dist.new_group([0, last]),
}
dist.all_reduce(torch.ones(4))
if rank == last:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    calls[sys.argv[1]]()
    print(f"rank {rank}: no error was raised", flush=True)
except dist.DistBackendError as error:
    is_told = f"rank {last} on " in str(error) and " died " in str(error)
    print(f"rank {rank}: {'told' if is_told else 'not told'} by {sys.argv[1]}: {error}", flush=True)
os._exit(3)
