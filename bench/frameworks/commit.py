"""A rank of compare.py commit: commit.py ddl|horovod. Rank 0 prints how long check_host_updates() takes, in
microseconds, and how fast commit() copies a model of 205 MB with its momentum, in GB/s."""
import statistics
import sys
import time

import torch

if sys.argv[1] == "ddl":
    import ddl.torch as hvd
else:
    import horovod.torch as hvd
    import horovod.torch.elastic

CHECKS, COMMITS = 300, 9


def seconds(function, times):
    found = []
    for _ in range(times):
        began = time.perf_counter()
        function()
        found.append(time.perf_counter() - began)
    return statistics.median(found[1:])


@hvd.elastic.run
def train(state):
    state.optimizer.zero_grad()
    state.model(torch.ones(1, ROWS)).sum().backward()
    state.optimizer.step()
    check, commit = seconds(state.check_host_updates, CHECKS), seconds(state.commit, COMMITS)
    if hvd.rank() == 0:
        print(f"check {1e6 * check} commit {2 * 4e-9 * 1024 * ROWS / commit}", flush=True)


hvd.init()
ROWS = int(205e6 / 8 / 1024)  # two floats for each parameter
model = torch.nn.Linear(ROWS, 1024, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
train(hvd.elastic.TorchState(model, optimizer))
