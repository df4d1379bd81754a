"""A loop of PyTorch with Horovod's own elastic state goes on when a rank is killed.

    horovod_elastic.py DIES    the rank that kills itself in the first generation; "host": all wait until the host of
                               ranks 2 and 3 is lost

Whatever ranks there are, a step is one of the same rows, so the weights become those that one process gets. The pids of
all generations show that no process was started anew.
"""
import os
import signal
import sys

import horovod.torch as hvd
import torch
from horovod.torch import elastic  # Horovod does not import it by itself

STEPS, SIZE = 12, 4
GONE = {2, 3} if sys.argv[1] == "host" else {int(sys.argv[1])}
INPUTS = torch.cos(torch.arange(24 * 3, dtype=torch.float32)).reshape(24, 3)
TARGETS = INPUTS.sum(dim=1, keepdim=True)
PID = os.getpid()


def made(start):
    model = torch.nn.Linear(3, 1, bias=False)
    torch.nn.init.constant_(model.weight, start)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step(model, optimizer, rank, size):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(INPUTS[rank::size]), TARGETS[rank::size]).backward()
    optimizer.step()


def survivors(pids, size):
    """The pids, by rank, as all ranks have them."""
    found = hvd.allgather_object(PID)
    assert len(found) == size
    return pids + [found]


@elastic.run
def train(state):
    rank, size = hvd.rank(), hvd.size()
    state.pids = survivors(state.pids, size)
    while state.step < STEPS:
        if state.step == 7 and size == SIZE:
            if len(GONE) == 1 and rank in GONE:
                os.kill(PID, signal.SIGKILL)
            if len(GONE) > 1:
                print("waits\n", end="", flush=True)
            while len(GONE) > 1:
                hvd.allreduce(torch.zeros(1), name="wait")
        step(state.model, state.optimizer, rank, size)
        state.step += 1
        if state.step % 3 == 0:
            state.commit()


hvd.init()
first_rank = hvd.rank()
model, optimizer = made(first_rank)  # sync() gives all what rank 0 has
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
state = elastic.TorchState(model, optimizer, step=0, pids=[])
train(state)

alone, of_one = made(0)
for _ in range(STEPS):
    step(alone, of_one, 0, 1)
wrong = []
if (alone.weight - model.weight).abs().max() > 1e-5:
    wrong.append(f"{model.weight} is not {alone.weight}")
first, second = (state.pids + [[], []])[:2]
if len(first) != SIZE or second != [pid for rank, pid in enumerate(first) if rank not in GONE] or len(state.pids) != 2:
    wrong.append(f"the ranks were {state.pids}")
places = [hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()]
if hvd.size() != SIZE - len(GONE) or not 0 <= places[0] < places[1] or not 0 <= places[2] < places[3]:
    wrong.append(f"rank {hvd.rank()} of {hvd.size()} has the places {places}")
print(f"horovod_elastic.py: rank {hvd.rank()}: {'; '.join(wrong) or 'right'}\n", end="", flush=True)
sys.exit(1 if wrong else 0)
