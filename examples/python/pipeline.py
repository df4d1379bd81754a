"""A pipeline: each rank has some of the layers, and passes on what it has computed of small parts of the batch.

    ddlrun -np 2 python pipeline.py [--backend gloo]
"""
import torch
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

import small_regression

PARTS = 4  # of the batch
_, rank, ranks = small_regression.begin(__doc__)
layers = list(small_regression.model())
if ranks > len(layers):
    raise SystemExit(f"the model has {len(layers)} layers, which are too few for {ranks} ranks")
bounds = [len(layers) * one // ranks for one in range(ranks + 1)]
own = torch.nn.Sequential(*layers[bounds[rank]:bounds[rank + 1]])
stage = PipelineStage(own, rank, ranks, torch.device("cpu"))
schedule = ScheduleGPipe(stage, PARTS, loss_fn=torch.nn.functional.mse_loss)
parameters = list(own.parameters()) or [torch.zeros(1, requires_grad=True)]  # some layers have none
optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
inputs = (small_regression.INPUTS,) if rank == 0 else ()
is_last, losses = rank == ranks - 1, []
for _ in range(small_regression.STEPS):
    optimizer.zero_grad()
    losses = []
    schedule.step(*inputs, target=small_regression.TARGETS if is_last else None, losses=losses if is_last else None)
    optimizer.step()
small_regression.end(torch.stack(losses).mean() if is_last else None)
