"""Fully sharded data parallel (FSDP2): a rank keeps its part of each parameter, of its gradient and of its momentum.

    ddlrun -np 4 python fsdp2.py [--backend gloo]
"""
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import small_regression

_, rank, ranks = small_regression.begin(__doc__)
inputs, targets = (whole[rank::ranks] for whole in (small_regression.INPUTS, small_regression.TARGETS))
model, mesh = small_regression.model(), init_device_mesh("cpu", (ranks,))
for layer in model:
    if isinstance(layer, torch.nn.Linear):
        fully_shard(layer, mesh=mesh)  # its parameters are gathered together, when the layer is computed
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(small_regression.STEPS):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()  # FSDP2 reduces and scatters the gradients
    optimizer.step()
mean = loss.detach()
dist.all_reduce(mean)
small_regression.end(mean / ranks if rank == 0 else None)
