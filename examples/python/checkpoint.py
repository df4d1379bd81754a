"""A checkpoint of parameters that are spread over the ranks, loaded by another number of ranks.

    ddlrun -np 4 python checkpoint.py save FOLDER [--backend gloo]
    ddlrun -np 2 python checkpoint.py load FOLDER
"""
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import small_regression

options, rank, ranks = small_regression.begin(__doc__, "action", "folder")
inputs, targets = (whole[rank::ranks] for whole in (small_regression.INPUTS, small_regression.TARGETS))
model = fully_shard(small_regression.model(), mesh=init_device_mesh("cpu", (ranks,)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
steps, half = small_regression.STEPS, small_regression.STEPS // 2
if options.action == "load":
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.load(state, checkpoint_id=options.folder)  # each rank reads the parts that are its own now
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
for _ in range(half if options.action == "save" else steps - half):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
if options.action == "save":
    weights, moments = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=options.folder)
mean = loss.detach()
dist.all_reduce(mean)
small_regression.end(mean / ranks if rank == 0 else None)
