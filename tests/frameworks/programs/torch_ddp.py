"""DistributedDataParallel as torchrun starts it: torch_ddp.py [BACKEND], which is gloo or ddl."""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import problem
import torch_model

backend = sys.argv[1] if len(sys.argv) > 1 else "gloo"
if backend == "ddl":
    import ddl.torch.process_group  # noqa: F401  It registers the backend.
# PyTorch asks for libuv, without which Debian 13 has built it; the store of older versions does not need it.
os.environ.setdefault("USE_LIBUV", "0")
dist.init_process_group(backend)  # env://
rank, size = dist.get_rank(), dist.get_world_size()
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
net = DistributedDataParallel(torch_model.model(rank))
torch_model.train(net, torch_model.sgd(net), *torch_model.share(rank, size))
place = f"local rank {os.environ['LOCAL_RANK']}, node {os.environ['NODE_RANK']}"
problem.report(f"torch over {backend}, {place}", rank, size, torch_model.weights(net),
               sum=total.item() == size * (size + 1) / 2,
               started_as_by_torchrun=dist.is_torchelastic_launched(),
               same_node=os.environ["GROUP_RANK"] == os.environ["NODE_RANK"])
dist.destroy_process_group()
if backend == "gloo":
    problem.leave()
