"""What the programs of training frameworks compute: least squares by gradient descent, each rank with some of the rows.

A program starts with START on rank 0 and with something else on the others, takes STEPS steps with the mean of the
gradients of all ranks, and must end with what NumPy computes here in one process.
"""
import os
import sys

import numpy as np

ROWS, STEPS, RATE = 12, 4, 0.1
INPUTS = np.cos(np.arange(ROWS * 3, dtype=np.float32)).reshape(ROWS, 3)
TARGETS = INPUTS.sum(axis=1, keepdims=True)
START = np.full((3, 1), 0.5, dtype=np.float32)


def start(rank):
    return START + np.float32(rank)


def share(rank, size):
    """The rows of a rank: as many as those of every other."""
    assert ROWS % size == 0
    return INPUTS[rank::size], TARGETS[rank::size]


def solution():
    weights = START
    for _ in range(STEPS):
        weights = weights - RATE * 2 / ROWS * INPUTS.T @ (INPUTS @ weights - TARGETS)
    return weights


def report(program, rank, size, weights, **others):
    """Prints whether a rank has the solution, and whether all others are true; ends the process with 1 if not."""
    difference = float(np.abs(np.reshape(weights, (3, 1)) - solution()).max())
    wrong = [] if difference < 1e-5 else [f"the weights differ by {difference}"]
    wrong += [f"{name} is not so" for name, holds in others.items() if not holds]
    # In one piece with its end: under torchrun all ranks of a host write into one pipe.
    print(f"{program}: rank {rank} of {size}: {'; '.join(wrong) or 'right'}\n", end="", flush=True)
    if wrong:
        sys.exit(1)


def leave():
    """Ends the process without what Python does at its end.

    A thread of PyTorch's gloo that is late lets go of a tensor while Python ends, and so it aborts the process
    ("terminate called without an active exception"). destroy_process_group() does not end these threads while a model
    or an optimizer still holds the group. A test must not depend on that; programs over libddl end as usual.
    """
    sys.stdout.flush()
    os._exit(0)
