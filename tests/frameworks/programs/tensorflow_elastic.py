"""A loop with a tape, in a function that is traced once, goes on after the death of a rank, and in the next job.

    tensorflow_elastic.py DIES     the rank that kills itself in the first generation of the first job

The second generation says when its job is to be asked to end, and waits for that. The next job has two ranks.
Whatever ranks there are, a step is one of the same rows, so the weights become those that one process gets. A part of
the gradients is sparse, and one variable is each rank's own: both are divided by the number of ranks that there are.
"""
import os
import signal
import sys
import time

import numpy as np
import tensorflow as tf

import ddl.tensorflow as hvd

dies, STEPS, RATE = int(sys.argv[1]), 12, 0.1
INPUTS = np.cos(np.arange(12 * 3, dtype=np.float32)).reshape(12, 3)
TARGETS = INPUTS.sum(axis=1, keepdims=True)
PLACES = np.arange(12) % 4
hvd.init()
START = hvd.rank()


def made():
    return [tf.Variable(np.full(shape, START, np.float32)) for shape in ((3, 1), (4, 1))]


def loss_of(weights, table, inputs, targets, places):
    return tf.reduce_mean((inputs @ weights + tf.gather(table, places) - targets) ** 2)


weights, table = made()
own = tf.Variable(0.0)
traces = 0


@tf.function(autograph=False)  # which would leave files of a process that is killed
def step(inputs, targets, places):
    global traces
    traces += 1
    with tf.GradientTape() as tape:
        loss = loss_of(weights, table, inputs, targets, places) + own
    tape = hvd.DistributedGradientTape(tape)
    tape.register_local_source(own)
    variables = [weights, table, own]
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(RATE * tf.convert_to_tensor(gradient))
    return hvd.allreduce(tf.ones([1]), op=hvd.Sum, name="ones")


@hvd.elastic.run
def train(state):
    rank, size = hvd.rank(), hvd.size()
    state.sizes.append(size)
    while state.step < STEPS:
        if state.step == 7 and rank == dies and len(state.sizes) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if state.step == 10 and len(state.sizes) == 2:
            print("commits until the job ends\n", end="", flush=True)
            while True:
                time.sleep(0.01)
                state.commit()
        ranks = step(*(tf.constant(one[rank::size]) for one in (INPUTS, TARGETS, PLACES)))
        assert int(ranks[0]) == size
        state.own -= RATE / size
        state.step += 1
        if state.step % 5 == 0:
            state.commit()


# For any number of rows.
step = step.get_concrete_function(
    *(tf.TensorSpec([None, *one.shape[1:]], one.dtype) for one in (INPUTS, TARGETS, PLACES)))
state = hvd.elastic.TensorFlowState([weights, table, own], step=0, own=0.0, sizes=[])
train(state)

START = 0
alone = made()
for _ in range(STEPS):
    with tf.GradientTape() as tape:
        loss = loss_of(*alone, INPUTS, TARGETS, PLACES)
    for variable, gradient in zip(alone, tape.gradient(loss, alone)):
        variable.assign_sub(RATE * tf.convert_to_tensor(gradient))
wrong = []
for one, other in zip((weights, table), alone):
    if np.abs(one.numpy() - other.numpy()).max() > 1e-5:
        wrong.append(f"{one.numpy()} is not {other.numpy()}")
if abs(float(own) - state.own) > 1e-5:
    wrong.append(f"the own variable is {float(own)}, not {state.own}")
if (state.sizes, state.step, traces) != ([3, 2, 2], STEPS, 1):
    wrong.append(f"sizes {state.sizes}, step {state.step}, {traces} traces")
print(f"tensorflow_elastic.py: rank {hvd.rank()}: {'; '.join(wrong) or 'right'}\n", end="", flush=True)
sys.exit(1 if wrong else 0)
