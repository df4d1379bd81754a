"""A network of Keras that goes on training when a rank is killed, and when ranks come.

    ddlrun --elastic continue -np 4 --min-np 1 python elastic_keras.py [--epochs 20] [--pause 0.1]

Kill one of the processes whose pids it prints. The others do the batches since the last commit again.
"""
import argparse
import os
import time

import numpy as np
from tensorflow import keras

import ddl.elastic
import ddl.tensorflow.keras as hvd

BATCHES, BATCH = 16, 48  # of an epoch; rows of all ranks together
INPUTS = np.linspace(-1, 1, BATCHES * BATCH, dtype="float32").reshape(-1, 1)
TARGETS = np.sin(3 * INPUTS)


@hvd.elastic.run
def train(state, callbacks, epochs):
    where = f"generation {ddl.elastic.generation()}: rank {hvd.rank()} of {hvd.size()}, pid {os.getpid()}"
    print(f"{where}, goes on in epoch {state.epoch} after {state.batch} batches", flush=True)
    while state.epoch < epochs:
        order = np.random.default_rng(state.epoch).permutation(len(INPUTS))
        left, share = BATCHES - state.batch, BATCH // hvd.size()
        rows = order[state.batch * BATCH :][hvd.rank() :: hvd.size()][: left * share]
        state.model.fit(
            INPUTS[rows], TARGETS[rows], batch_size=share, shuffle=False, verbose=0, callbacks=callbacks
        )


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--epochs", type=int, default=20, help="20 if not given")
parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="after each batch")
options = parser.parse_args()
hvd.init()
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(32, "tanh"), keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)), "mse")
state = hvd.elastic.KerasState(model, epoch=0, batch=0)
callbacks = [
    keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: time.sleep(options.pause)),
    hvd.elastic.UpdateBatchStateCallback(state),
    hvd.elastic.UpdateEpochStateCallback(state),
    hvd.elastic.CommitStateCallback(state, batches_per_commit=5),
]
train(state, callbacks, options.epochs)
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks: loss {model.evaluate(INPUTS, TARGETS, verbose=0):.5f}", flush=True)
