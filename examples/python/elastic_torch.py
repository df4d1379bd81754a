"""A network that goes on training when a rank is killed, and when ranks come. Each sample comes once in each epoch.

    ddlrun --elastic continue -np 4 --min-np 1 python elastic_torch.py [--epochs 20] [--pause 0.1]

Kill one of the processes whose pids it prints. The others do the batches since the last commit again.
"""
import argparse
import os
import time

import torch

import ddl.elastic
import ddl.torch as hvd

BATCH = 8
INPUTS = torch.linspace(-1, 1, 500).unsqueeze(1)
TARGETS = torch.sin(3 * INPUTS)
loss_of = torch.nn.functional.mse_loss


@hvd.elastic.run
def train(state, loader, options):
    where = f"generation {ddl.elastic.generation()}: rank {hvd.rank()} of {hvd.size()}, pid {os.getpid()}"
    done = state.sampler.state_dict()["done"]
    print(f"{where}, goes on in epoch {state.epoch} after {done} samples", flush=True)
    while state.epoch < options.epochs:
        common = state.sampler.common_batches(BATCH)
        for batch, (inputs, targets) in enumerate(loader):
            state.optimizer.zero_grad()
            loss_of(state.model(inputs), targets).backward()
            state.optimizer.step()
            state.sampler.record_batch(batch, BATCH)
            time.sleep(options.pause)
            if batch % 5 == 4 and batch < common:  # a commit is one of all ranks
                state.commit()
        hvd.join()  # a rank may have had one batch less than another
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.commit()


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--epochs", type=int, default=20, help="20 if not given")
parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="after each batch")
options = parser.parse_args()
hvd.init()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
sampler = hvd.elastic.ElasticSampler(INPUTS)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(INPUTS, TARGETS), BATCH, sampler=sampler)
state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0)
train(state, loader, options)
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks: loss {float(loss_of(model(INPUTS), TARGETS).detach()):.5f}", flush=True)
