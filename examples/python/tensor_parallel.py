"""Tensor parallel: each rank has some columns of the first layer and the rows of the second one that belong to them.

    ddlrun -np 4 python tensor_parallel.py [--backend gloo]
"""
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import small_regression

_, rank, ranks = small_regression.begin(__doc__)
mesh = init_device_mesh("cpu", (ranks,))
# The parts of the first layer's output stay on their ranks; the second layer's outputs are summed over all of them.
plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
model = parallelize_module(small_regression.model(), mesh, plan)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)  # some parameters are not cut
for _ in range(small_regression.STEPS):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(small_regression.INPUTS), small_regression.TARGETS)
    loss.backward()
    optimizer.step()
small_regression.end(loss if rank == 0 else None)
