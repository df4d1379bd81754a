"""A rank of compare.py continue: goes_on.py ddl|horovod MEGABYTES. Trains a model whose parameters and momentum have
that size. In the first generation the last rank kills itself after a commit; it prints when that was, and each of the
others when it has made the next step without it.
"""
import os
import signal
import sys
import time

import torch

if sys.argv[1] == "ddl":
    import ddl.torch as hvd
else:
    import horovod.torch as hvd
    import horovod.torch.elastic


@hvd.elastic.run
def train(state):
    goes_on = state.step > 0
    while state.step < 6:
        state.optimizer.zero_grad()
        state.model(torch.ones(1, ROWS)).sum().backward()
        state.optimizer.step()
        state.step += 1
        if goes_on:
            print(f"again {time.time()}", flush=True)
            goes_on = False
        state.commit()
        if state.step == 3 and hvd.size() == FIRST_SIZE and hvd.rank() == FIRST_SIZE - 1:
            print(f"ended {time.time()}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)


hvd.init()
FIRST_SIZE = 4
ROWS = int(float(sys.argv[2]) * 1e6 / 8 / 1024)  # two floats for each parameter
model = torch.nn.Linear(ROWS, 1024, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
train(hvd.elastic.TorchState(model, optimizer, step=0))
