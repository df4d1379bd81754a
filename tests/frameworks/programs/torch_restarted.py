"""DistributedDataParallel with a file of its state: a rank is killed in the first two generations of the job, and the
next one goes on from the last step. Started in a folder that all ranks share.
"""
import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import problem
import torch_model

STATE = "state.pt"
generation = int(os.environ["DDL_GENERATION"])
os.environ.setdefault("USE_LIBUV", "0")  # as in torch_ddp.py
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
net = DistributedDataParallel(torch_model.model(rank))
optimizer = torch_model.sgd(net)
first = 0
if os.path.exists(STATE):
    state = torch.load(STATE)
    net.module.load_state_dict(state["net"])
    first = state["step"] + 1
began_where_the_last_one_ended = first == generation
inputs, targets = torch_model.share(rank, size)
for step in range(first, problem.STEPS):
    optimizer.zero_grad()
    torch_model.loss(net, inputs, targets).backward()
    optimizer.step()
    if rank == 0:
        torch.save({"net": net.module.state_dict(), "step": step}, "new.pt")
        os.rename("new.pt", STATE)
    dist.barrier()
    if rank == 1 and generation < 2:
        os.kill(os.getpid(), signal.SIGKILL)
problem.report("torch, restarted", rank, size, torch_model.weights(net),
               began_where_the_last_one_ended=began_where_the_last_one_ended,
               third_generation=generation == 2,
               counted_as_by_torchrun=os.environ["TORCHELASTIC_RESTART_COUNT"] == "2")
dist.destroy_process_group()
problem.leave()
