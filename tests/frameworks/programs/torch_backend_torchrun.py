"""The backend "ddl" where torchrun has started the ranks, two for each rank of the job that runs this."""
import os
import subprocess
import sys
import tempfile

if "TORCHELASTIC_ERROR_FILE" not in os.environ:
    # ddlrun's rank: it runs torchrun, as the job script of a site would on each node.
    where = {"nnodes": "WORLD_SIZE", "node_rank": "RANK", "master_addr": "MASTER_ADDR", "master_port": "MASTER_PORT"}
    options = [f"--{name}={os.environ[variable]}" for name, variable in where.items()]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", *options, __file__]
    with tempfile.TemporaryDirectory() as folder:  # it leaves its logs
        sys.exit(subprocess.run(words, env={**os.environ, "TMPDIR": folder}, check=False).returncode)

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import problem
import torch_model


def of_launchers():
    return {name: value for name, value in os.environ.items() if name.startswith(("PMI", "DDL_"))}


environment = of_launchers()
dist.init_process_group("ddl")
rank, size = dist.get_rank(), dist.get_world_size()
net = DistributedDataParallel(torch_model.model(rank))
torch_model.train(net, torch_model.sgd(net), *torch_model.share(rank, size))
message = torch.tensor([float(rank)])
sent = dist.isend(message, (rank + 1) % size)
received = torch.empty(1)
dist.recv(received, (rank - 1) % size)
sent.wait()
pairs = [dist.new_group([0, 1]), dist.new_group([size - 2, size - 1])]
pair = pairs[rank >= size - 2]
total = torch.ones(1)
if dist.get_rank(pair) >= 0:
    dist.all_reduce(total, group=pair)

import ddl

place = ddl.rank(), ddl.size(), ddl.local_rank()
problem.report("torchrun", rank, size, torch_model.weights(net),
               place_in_libddl=place == (rank, size, int(os.environ["LOCAL_RANK"])),
               message=received.item() == (rank - 1) % size, pair=total.item() == 2,
               same_environment=of_launchers() == environment)
dist.destroy_process_group()
