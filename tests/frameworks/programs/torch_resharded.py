"""Adam whose state is divided among the ranks, beside data-parallel training, whose bits it has.

    torch_resharded.py FOLDER

Writes into the folder what each rank has; if something is there, of another number of ranks, it goes on from that.
"""
import glob
import sys

import torch

import ddl.torch as hvd

STEPS = 3
CAP = 1e-3  # MiB: several buckets, and parameters that lie in several slices


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(7, 37), torch.nn.Tanh(), torch.nn.Linear(37, 41), torch.nn.Tanh(), torch.nn.Linear(41, 1)
    )


def train(net, optimizer):
    for step in range(STEPS):
        torch.manual_seed(100 * step + hvd.rank())
        inputs = torch.rand(12, 7)
        optimizer.zero_grad()
        (net(inputs) - inputs.sum(dim=1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()


hvd.init()
folder, rank, size = sys.argv[1], hvd.rank(), hvd.size()
sharded, plain = model(), model()
adam = torch.optim.Adam(plain.parameters(), lr=0.01)
optimizer = hvd.ShardedOptimizer(
    torch.optim.Adam(sharded.parameters(), lr=0.01), sharded.named_parameters(), bucket_cap_mb=CAP, model=sharded
)
wrong, saved = [], sorted(glob.glob(f"{folder}/shard.*"))
before = 0
if saved:
    shards = [torch.load(name) for name in saved]
    before = shards[0]["ranks"]
    weights, state = torch.load(f"{folder}/whole")
    for net in (sharded, plain):
        net.load_state_dict(weights)
    adam.load_state_dict(state)
    optimizer.load_state_dict(shards)
    if before != len(saved) or before <= size:
        wrong.append(f"{len(saved)} of {before} ranks have written")
parallel = hvd.DistributedOptimizer(adam, plain.named_parameters())
train(plain, parallel)
train(sharded, optimizer)
found = sharded.state_dict()  # which waits for them
if not all(torch.equal(a, b) for a, b in zip(found.values(), plain.state_dict().values())):
    wrong.append("the bits are not those of data-parallel training")
if not saved:
    torch.save(optimizer.shard_state_dict(), f"{folder}/shard.{rank}")
    if rank == 0:
        torch.save((plain.state_dict(), adam.state_dict()), f"{folder}/whole")
hosts = hvd.allgather_object(hvd.local_rank()).count(0)
print(f"resharded: rank {rank} of {size} on {hosts} hosts, after {before}: {'; '.join(wrong) or 'right'}\n", end="",
      flush=True)
sys.exit(1 if wrong else 0)
