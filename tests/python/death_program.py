"""The last rank ends in the middle of a training: the others get an error that names it, and do not crash.

death_program.py optimizer|ddp|hook
"""
import os
import signal
import sys

import torch
import torch.distributed as dist

import ddl.torch as hvd
import ddl.torch.process_group as process_group

# ddlrun asks the others to end; they are to say first what they have seen.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
hvd.init()
net = torch.nn.Linear(3, 1)
way = sys.argv[1]
if way == "optimizer":
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters())
else:
    os.environ.setdefault("USE_LIBUV", "0")  # Debian 13 has built PyTorch without libuv
    dist.init_process_group("ddl" if way == "ddp" else "gloo")
    net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if way == "hook":
        net.register_comm_hook(None, process_group.average_by_ddl)
try:
    for step in range(10):
        if step == 5 and hvd.rank() == hvd.size() - 1:
            os._exit(7)
        optimizer.zero_grad()
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()
except Exception as error:
    # PyTorch wraps what comes from a backward pass.
    named = f"rank {hvd.size() - 1} on " in str(error) and " died " in str(error)
    print(f"rank {hvd.rank()} of {way}: {'told' if named else 'not told'}: {type(error).__name__}: {error}", flush=True)
    os._exit(3)
print("no error was raised", flush=True)
