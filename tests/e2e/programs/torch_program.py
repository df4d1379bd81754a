"""An unchanged program of PyTorch: what torchrun starts, ddlrun starts.

Each rank trains a small model by DistributedDataParallel on its share of the same batch, prints a line, and ends with 1
if a sum or the result is not what one process would have.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH = 4, 12


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def train(net, share):
    torch.manual_seed(2)
    inputs = torch.rand(BATCH, 3)
    targets = inputs.sum(dim=1, keepdim=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(STEPS):
        loss = (net(inputs[share]) - targets[share]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# PyTorch asks for libuv, without which Debian 13 has built it; the store of older versions does not need it.
os.environ.setdefault("USE_LIBUV", "0")
dist.init_process_group("gloo")  # env://
rank, size = dist.get_rank(), dist.get_world_size()
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)

net = DistributedDataParallel(model())
train(net, slice(rank, None, size))
alone = model()
train(alone, slice(None))
difference = max((a - b).abs().max().item() for a, b in zip(net.parameters(), alone.parameters()))

is_right = total.item() == size * (size + 1) / 2 and difference < 1e-5
is_right = is_right and dist.is_torchelastic_launched() and os.environ["GROUP_RANK"] == os.environ["NODE_RANK"]
print(f"torch: rank {rank} of {size}, local {os.environ['LOCAL_RANK']}, node {os.environ['NODE_RANK']}: "
      f"{'right' if is_right else f'wrong: sum {total.item()}, difference {difference}'}", flush=True)
dist.destroy_process_group()
sys.exit(0 if is_right else 1)
