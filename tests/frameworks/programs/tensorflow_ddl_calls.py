"""The calls of ddl.tensorflow, and their gradients, on any number of ranks: eagerly, in functions, and in sessions.

Argument: "functions", if they are to be functions of Python; otherwise they must be libddl's operations.
"""
import sys

import ddl.tensorflow as hvd
import numpy as np
import tensorflow as tf
from ddl.tensorflow import _module

v1 = tf.compat.v1
hvd.init()
rank, size = hvd.rank(), hvd.size()
total = sum(range(1, size + 1))  # of each rank's number, from 1
wrong = []
if (_module.operations is None) != (sys.argv[1:] == ["functions"]):
    wrong.append(f"another way is used than the test wants: {_module.problem}")


def everywhere(name, build, *expected):
    """build: makes tensors, which must have these values however TensorFlow runs it."""
    with tf.Graph().as_default(), v1.Session() as session:
        in_session = session.run(build())
    ways = {"eager": tf.nest.map_structure(lambda one: one.numpy(), build()), "session": in_session}
    ways["function"] = tf.nest.map_structure(lambda one: one.numpy(), tf.function(build)())
    for way, found in ways.items():
        for one, right in zip(found, expected):
            right = np.asarray(right)
            precision = 1e-2 if one.itemsize == 2 else 1e-6
            if one.shape != right.shape or not np.allclose(np.asarray(one, float), right, rtol=precision):
                wrong.append(f"{name}, {way}: {one.tolist()}, which should be {right.tolist()}")


def with_gradients(call, *values):
    """The result's tensors, and the gradient of the sum of each one times its own numbers 1, 2, ..."""

    def weighted(results):
        sums = []
        for one in results:
            weights = tf.reshape(tf.range(1, tf.size(one) + 1), tf.shape(one))
            sums.append(tf.reduce_sum(one * tf.cast(weights, one.dtype)))
        return tf.add_n(sums)

    def build():
        inputs = [tf.constant(value, tf.float64) for value in values]
        if not tf.executing_eagerly() and not tf.inside_function():
            results = call(*inputs)
            return [*results, *tf.gradients(weighted(results), inputs)]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            results = call(*inputs)
            score = weighted(results)
        return [*results, *tape.gradient(score, inputs)]

    return build


def types():
    for name in ("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint16", "uint64"):
        yield tf.as_dtype(name)


ones = np.ones((2, 3))
everywhere("sums of all types",
           lambda: [hvd.allreduce(tf.cast(tf.ones([2, 3]) * (rank + 1), dtype), op=hvd.Sum) for dtype in types()],
           *[ones * total for _ in types()])
everywhere("allreduce", with_gradients(lambda x: [hvd.allreduce(x)], np.arange(3.0) + rank),
           np.arange(3.0) + (size - 1) / 2, [1, 2, 3])
everywhere("allreduce with scales",
           with_gradients(lambda x: [hvd.allreduce(x, op=hvd.Sum, prescale_factor=1 / 3, postscale_factor=6)], [1.0]),
           [2 * size], [2 * size])
everywhere("maximum", lambda: [hvd.allreduce(tf.constant([rank + 1.0]), op=hvd.Max)], [size])
everywhere("product", lambda: [hvd.allreduce(tf.constant([2.0]), op=hvd.Product)], [2.0**size])
everywhere("grouped allreduce",
           with_gradients(lambda x, y: hvd.grouped_allreduce([x, y], op=hvd.Sum), [1.0], [[2.0, 3.0]]),
           [size], [[2 * size, 3 * size]], [size], [[size, 2 * size]])
everywhere("a group of two types",
           lambda: hvd.grouped_allreduce([tf.constant([1.0]), tf.constant([2])], op=hvd.Sum), [size], [2 * size])
rows = [one for one in range(size) for _ in range(one + 1)]
mine = slice(rows.index(rank), rows.index(rank) + rank + 1)
weights = np.arange(1.0, 2 * len(rows) + 1).reshape(-1, 2)
everywhere("allgather", with_gradients(lambda x: [hvd.allgather(x)], np.full((rank + 1, 2), float(rank))),
           np.repeat(np.array(rows, float), 2).reshape(-1, 2), weights[mine])
everywhere("grouped allgather", lambda: hvd.grouped_allgather([tf.constant([rank]), tf.ones([rank + 1, 1])]),
           range(size), np.ones((len(rows), 1)))
everywhere("broadcast", with_gradients(lambda x: [hvd.broadcast(x, size - 1)], [1.0 + rank]),
           [size], [1.0 if rank == size - 1 else 0.0])
splits = [one + 1 for one in range(size)]
everywhere("alltoall with splits",
           lambda: hvd.alltoall(tf.repeat(tf.range(size), splits) + 10 * rank, splits=splits),
           [rank + 10 * one for one in range(size) for _ in range(rank + 1)], [rank + 1] * size)
everywhere("alltoall", with_gradients(lambda x: [hvd.alltoall(x)], np.arange(float(size)) + 10 * rank),
           [rank + 10.0 * one for one in range(size)], [rank + 1.0] * size)
own = 3 if rank == 0 else 2  # of 2 * size + 1 rows
first = 0 if rank == 0 else 3 + 2 * (rank - 1)
gathered = [place + 1 for one in range(size) for place in range(3 if one == 0 else 2)]
everywhere("reducescatter", with_gradients(lambda x: [hvd.reducescatter(x, op=hvd.Sum)], np.arange(2.0 * size + 1)),
           size * (np.arange(own) + first), size * np.array(gathered, float))
everywhere("grouped reducescatter",
           lambda: hvd.grouped_reducescatter([tf.ones([size]), tf.ones([size, 2], tf.int32)], op=hvd.Sum),
           [size], [[size, size]])
slices = tf.IndexedSlices


def sparse():
    one = hvd.allreduce(slices(tf.constant([[1.0 + rank]]), tf.constant([rank]), tf.constant([size, 1])))
    return [one.values, one.indices]


everywhere("slices", sparse, [[(1.0 + one) / size] for one in range(size)], range(size))
everywhere("numbers", lambda: [hvd.rank_op(), hvd.size_op(), hvd.local_rank_op(), hvd.local_size_op()],
           rank, size, hvd.local_rank(), hvd.local_size())
if size > 1:
    alone = hvd.add_process_set([0])
    number = alone.process_set_id
    everywhere("numbers of a set",
               lambda: [hvd.size_op(number), hvd.process_set_included_op(number)], 1, int(rank == 0))
    if rank == 0:
        everywhere("a set", lambda: [hvd.allreduce(tf.constant([5.0]), op=hvd.Sum, process_set=alone)], [5.0])
if hvd.broadcast_object({"rank": rank}, 0) != {"rank": 0} or hvd.allgather_object(rank) != list(range(size)):
    wrong.append("objects are not what they should be")


def refused(name, function, *words, kind=ValueError):
    """function: of no tensor; XLA must compile it."""
    try:
        wrong.append(f"{name} by XLA: no error was raised, but {tf.function(function, jit_compile=True)()}")
    except kind as error:
        if not all(word in str(error) for word in words):
            wrong.append(f"{name} by XLA: {error}")


x = tf.ones([size])
plain = tf.function(lambda: hvd.allreduce(x, op=hvd.Sum, name="inside"))
calls = {
    "allreduce": hvd.allreduce, "allgather": hvd.allgather, "alltoall": hvd.alltoall,
    "reducescatter": hvd.reducescatter, "broadcast": lambda tensor, name: hvd.broadcast(tensor, 0, name),
}
for name, call in calls.items():
    refused(name, lambda: call(x, name="tensor_x"), f'{name} "tensor_x"', "jit_compile=False")
refused("a call without a name", lambda: hvd.allreduce(x), "allreduce", "jit_compile=False")
refused("rank_op", hvd.rank_op, "rank_op", "jit_compile=False")
refused("a branch", lambda: tf.cond(x[0] > 0, lambda: hvd.allreduce(x), lambda: x), "allreduce", "jit_compile=False")
refused("a function that is called", plain, 'allreduce "inside"', "jit_compile=False")
results = {"a function that XLA has refused": (plain(), size)}
# TensorFlow does not trace it again, and finds the operation later.
refused("a function that was called before", plain, "XLA", kind=tf.errors.InvalidArgumentError)


@tf.function(jit_compile=True)
def around(tensor):
    with tf.init_scope():
        sums = hvd.allreduce(x, op=hvd.Sum)
    return tensor + sums


results["a call while a function for XLA is traced"] = around(x), 1 + size
doubled = tf.function(lambda tensor: 2 * tensor, jit_compile=True)
results["a call between functions of XLA"] = (
    tf.function(lambda: doubled(hvd.allreduce(doubled(x), op=hvd.Sum)))(), 4 * size)
for name, (found, right) in results.items():
    if found.numpy().tolist() != [right] * size:
        wrong.append(f"{name}: {found}, which should be {right}")
for one in wrong:
    print(f"rank {rank}: {one}", file=sys.stderr, flush=True)
print(f"ddl.tensorflow: rank {rank} of {size}: {f'{len(wrong)} wrong' if wrong else 'right'}", flush=True)
sys.exit(bool(wrong))
