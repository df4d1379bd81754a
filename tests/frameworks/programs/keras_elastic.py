"""A model of Keras is trained through the death of a rank, and with a process that takes its place.

    keras_elastic.py MODULE DIES [FOLDER...]     MODULE, FOLDER: see keras_problem.py

Rank DIES of generation 0 kills itself in the middle of an epoch. Whatever ranks there are, a step is one of the same
rows; so the weights become those that one process gets.
"""
import os
import signal
import sys
import tempfile
import time

dies = int(sys.argv.pop(2))
# TensorFlow leaves files of a process that is killed. This folder of the test is removed.
tempfile.tempdir = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
from keras_problem import *

import ddl

BATCHES, ROWS, EPOCHS = 4, 6, 4  # of an epoch; of a batch, of all ranks
SGD = dict(learning_rate=0.1, momentum=0.9)


def rows(array, batches, rank, size):
    """A rank's rows of some batches of an epoch."""
    return np.concatenate([array[ROWS * i : ROWS * (i + 1)][rank::size] for i in batches])


def fit(model, batches, rank, size, **options):
    inputs, targets = (rows(array, batches, rank, size) for array in (INPUTS, TARGETS))
    model.fit(inputs, targets, batch_size=ROWS // size, epochs=1, shuffle=False, verbose=0, **options)


class Die(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if hvd.rank() == dies and ddl._context.generation() == 0 and state.epoch == 1 and state.batch == 3:
            os.kill(os.getpid(), signal.SIGKILL)


class Follow(keras.callbacks.Callback):
    """The state's numbers are those of the optimizer."""

    def on_train_batch_begin(self, batch, logs=None):
        getattr(self.model, "jax_state_sync", lambda: None)()
        steps, batches = int(value(self.model.optimizer.iterations)), state.epoch * BATCHES + state.batch
        expect(steps == batches, f"{steps} steps are {state.epoch} epochs and {state.batch} batches")


@hvd.elastic.run
def train(state):
    trace = [hvd.size(), state.epoch, state.batch]
    if trace not in state.trace:
        state.trace.append(trace)
    while state.epoch < EPOCHS:
        if state.epoch == EPOCHS - 1:  # with the process that comes
            while hvd.size() < state.trace[0][0]:
                time.sleep(0.01)
                state.check_host_updates()
        fit(state.model, range(state.batch, BATCHES), hvd.rank(), hvd.size(), callbacks=callbacks)


unbuilt = keras.Sequential([keras.layers.Dense(1)])
expect_error(ValueError, "the model is not built", hvd.elastic.KerasState, unbuilt)

model = net(start=RANK)
model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(**SGD)), "mse")
state = hvd.elastic.KerasState(model, epoch=0, batch=0, trace=[])
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.elastic.CommitStateCallback(state, batches_per_commit=2),
    hvd.elastic.UpdateBatchStateCallback(state),
    hvd.elastic.UpdateEpochStateCallback(state),
    Die(),
    Follow(),
]
train(state)

alone = net(start=0)
alone.compile(keras.optimizers.SGD(**SGD), "mse")
for _ in range(EPOCHS):
    fit(alone, range(BATCHES), 0, 1)
off = difference(model.get_weights(), alone.get_weights())
expect(off < 1e-5, f"the weights differ by {off}")
expect((state.epoch, state.batch) == (EPOCHS, 0), f"the end is in epoch {state.epoch}, batch {state.batch}")
expect(int(value(model.optimizer.iterations)) == EPOCHS * BATCHES, "the number of steps is wrong")
ranks = hvd.size()
wanted = [[ranks, 0, 0], [ranks - 1, 1, 2], [ranks, EPOCHS - 1, 0]]
expect(state.trace == wanted, f"the generations begin at {state.trace}")
report()
