"""Adasum of Horovod, built with MPI, beside that of ddl.torch, in one process: of the same tensors, and of the steps of
an optimizer. Horovod needs a power of two ranks."""
import sys

import horovod.torch as theirs
import torch

import ddl.torch as ours

STEPS = 4
# Beside the norm. Horovod adds the products of float32 and float16 in that type's own loops.
NEAR = {torch.float64: 1e-13, torch.float32: 1e-5, torch.float16: 4e-3}


def tensors(rank, dtype):
    """Of any lengths, orthogonal, alike, opposite, tiny, of zeros, and with very different norms."""
    torch.manual_seed(rank)
    unit = torch.zeros(8)
    unit[rank] = 3.0
    made = [torch.rand(n) - 0.3 for n in (1, 7, 1000, 100_003)] + [
        unit, torch.full((5, 3), 2.0), torch.full((4,), (-1.0) ** rank), torch.zeros(6),
        torch.ones(3) if rank == 0 else torch.zeros(3), torch.rand(50) * 10.0 ** -rank,
    ]
    return [one.to(dtype) for one in made]


def trained(hvd, kind):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(5, 17), torch.nn.Tanh(), torch.nn.Linear(17, 3))
    optimizer = hvd.DistributedOptimizer(kind(net.parameters(), lr=0.05), net.named_parameters(), op=hvd.Adasum)
    for step in range(STEPS):
        torch.manual_seed(100 * step + hvd.rank())
        inputs = torch.rand(6, 5)
        optimizer.zero_grad()
        (net(inputs) - inputs[:, :3]).pow(2).mean().backward()
        optimizer.step()
    return torch.cat([one.detach().flatten() for one in net.parameters()])


def compare(what, found, expected, near):
    limit = near * max(expected.double().norm().item(), 1e-30)
    difference = (found.double() - expected.double()).abs().max().item()
    if not difference <= limit:
        wrong.append(f"{what} differs by {difference:.3g}, and {limit:.3g} is allowed")


ours.init()
theirs.init()
rank, size = ours.rank(), ours.size()
wrong = []
if (theirs.rank(), theirs.size(), theirs.mpi_built()) != (rank, size, True):
    wrong.append(f"Horovod is rank {theirs.rank()} of {theirs.size()}, with MPI: {theirs.mpi_built()}")
for dtype, near in NEAR.items():
    mine = tensors(rank, dtype)
    for i, one in enumerate(mine):
        found, expected = (hvd.allreduce(one, op=hvd.Adasum, name=f"{dtype}.{i}") for hvd in (ours, theirs))
        compare(f"tensor {i} of {dtype}", found, expected, near)
    # Fused, they are still tensors by themselves.
    handles = [[hvd.allreduce_async(one, op=hvd.Adasum, name=f"fused.{dtype}.{i}") for i, one in enumerate(mine)]
               for hvd in (ours, theirs)]
    for i, (one, other) in enumerate(zip(*handles)):
        compare(f"fused tensor {i} of {dtype}", ours.synchronize(one), theirs.synchronize(other), near)
for kind in (torch.optim.SGD, torch.optim.Adam):
    compare(f"{kind.__name__}'s weights", trained(ours, kind), trained(theirs, kind), 1e-5)
print(f"adasum: rank {rank} of {size}: {'; '.join(wrong) or 'right'}\n", end="", flush=True)
theirs.shutdown()
sys.exit(1 if wrong else 0)
