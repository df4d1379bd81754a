"""A least-squares fit with NumPy that goes on when a rank is killed, and when ranks come.

    ddlrun --elastic continue -np 4 --min-np 1 python elastic.py [--pause 0.1]

Kill one of the processes whose pids it prints. The others do the steps since the last commit again, and the fit is the
one that they would have found without the failure, up to rounding.
"""
import argparse
import os
import time

import numpy

import ddl
from ddl import elastic

STEPS = 200
random = numpy.random.default_rng(seed=1)
INPUTS = random.standard_normal((240, 5))
TARGETS = INPUTS @ numpy.arange(1.0, 6.0) + 0.01 * random.standard_normal(240)


@elastic.run
def fit(state, pause):
    rank, ranks = ddl.rank(), ddl.size()  # of this generation
    where = f"generation {elastic.generation()}: rank {rank} of {ranks}, pid {os.getpid()}"
    print(f"{where}, goes on at step {state.step}", flush=True)
    inputs, targets = INPUTS[rank::ranks], TARGETS[rank::ranks]
    while state.step < STEPS:
        gradient = inputs.T @ (inputs @ state.weights - targets)
        state.weights -= 0.5 / len(INPUTS) * ddl.allreduce(gradient)
        state.step += 1
        time.sleep(pause)
        if state.step % 10 == 0:
            state.commit()


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="after each step")
options = parser.parse_args()
ddl.init()
state = elastic.ObjectState(step=0, weights=numpy.zeros(5))
fit(state, options.pause)
if ddl.rank() == 0:
    print(f"weights {numpy.array2string(state.weights, precision=3)}", flush=True)
