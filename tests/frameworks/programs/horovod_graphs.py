"""Graphs and sessions of TensorFlow 1, as lessons on Horovod teach them; rank r learns on its part of [-1, 1].

    horovod_graphs.py functions|equation|ensemble

functions: y = sin(2 pi x) + sin(4 pi x). equation: -u'' = f, whose solution is sin(2 pi x), by a network's residual.
ensemble: the function again, but ranks do not combine gradients. A rank compares its weights with those of one process,
which learns on the parts of all ranks, or, in an ensemble, on its own.
"""
import sys

import horovod.tensorflow as hvd
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

WIDTH, HIDDEN, POINTS, STEPS, RATE = 16, 2, 16, 20, 1e-3
PI = np.pi
REAL = tf.float64
BIAS = tf.constant(0.1, REAL)  # 0 would keep the network odd: gradients of biases would be rounding errors alone


def network(x, initial=None):
    """The output, and the variables, which begin as others if these are given."""
    variables = []

    def variable(start):
        variables.append(tf.Variable(start if initial is None else initial[len(variables)].initialized_value()))
        return variables[-1]

    for width_in, width_out in zip([1] + [WIDTH] * HIDDEN, [WIDTH] * HIDDEN + [1]):
        start = tf.random_normal([width_in, width_out], stddev=(2 / (width_in + width_out)) ** 0.5, dtype=REAL)
        x = tf.matmul(x if len(variables) == 0 else tf.tanh(x), variable(start)) + variable(tf.fill([width_out], BIAS))
    return x, variables


def loss_of(kind, x, u):
    if kind != "equation":
        return tf.reduce_mean(tf.square(u - tf.sin(2 * PI * x) - tf.sin(4 * PI * x)))
    second = tf.gradients(tf.gradients(u, x)[0], x)[0]
    return tf.reduce_mean(tf.square(second + 4 * PI**2 * tf.sin(2 * PI * x))) / (4 * PI**2) ** 2


def points(rank, size):
    return np.linspace(2 * rank / size - 1, 2 * (rank + 1) / size - 1, POINTS).reshape(-1, 1)


def main():
    kind = sys.argv[1]
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    config = tf.ConfigProto()
    config.gpu_options.visible_device_list = str(hvd.local_rank())

    tf.set_random_seed(rank)
    x = tf.placeholder(REAL, [None, 1])
    u, variables = network(x)
    loss = loss_of(kind, x, u)
    opt = tf.train.AdamOptimizer(RATE * (1 if kind == "ensemble" else hvd.size()))
    alone = tf.train.AdamOptimizer(RATE * (1 if kind == "ensemble" else hvd.size()))
    if kind != "ensemble":
        opt = hvd.DistributedOptimizer(opt)
    train = opt.minimize(loss, var_list=variables)

    whole = tf.placeholder(REAL, [None, 1])
    one_process, others = network(whole, variables)
    train_alone = alone.minimize(loss_of(kind, whole, one_process), var_list=others)

    parts = [points(rank, size)] if kind == "ensemble" else [points(one, size) for one in range(size)]
    feed = {x: points(rank, size), whole: np.concatenate(parts)}
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        bcast = hvd.broadcast_global_variables(0)
        sess.run(bcast)
        first = sess.run(loss, feed_dict=feed)
        for _ in range(STEPS):
            _, last, _ = sess.run([train, loss, train_alone], feed_dict=feed)
        mine, theirs = sess.run([variables, others])
    difference = max(float(np.abs(a - b).max()) for a, b in zip(mine, theirs))
    wrong = [] if difference < 1e-9 else [f"the weights differ by {difference}"]
    if not last < first:
        wrong.append(f"the loss went from {first} to {last}")
    print(f"{kind}: rank {rank} of {size}: {'; '.join(wrong) or 'right'}", flush=True)
    sys.exit(1 if wrong else 0)


main()
