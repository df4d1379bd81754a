"""Training with ddl.tensorflow on two ranks: tapes, variables, optimizers of TensorFlow 1, and what is refused."""
import resource
import sys

import ddl
import ddl.tensorflow as hvd
import numpy as np
import tensorflow as tf
from ddl.tensorflow import _module

v1 = tf.compat.v1
# Functions of Python, which TensorFlow 2.12 has, run in their order, and raise ddl's own errors.
BY_KERNELS = _module.operations is not None
wrong = []


def check(name, holds, found=""):
    if not holds:
        wrong.append(f"{name} {found}")


def fails(name, kind, words, call):
    try:
        wrong.append(f"{name}: no error was raised, but {call()}")
    except kind as error:
        check(name, all(word in str(error) for word in words), error)


# TensorFlow has one thread for operations: if a call blocked it, no other operation would run.
tf.config.threading.set_inter_op_parallelism_threads(1)
fails("a call before init()", ValueError, ["init()"], lambda: hvd.allreduce(tf.ones(1)))
hvd.init()
rank, size = hvd.rank(), hvd.size()


@tf.function
def independent(x):
    order = range(100) if rank == 0 else reversed(range(100))
    return tf.add_n([hvd.allreduce(x + float(i), op=hvd.Sum, name=f"independent{i}") for i in order])


if BY_KERNELS:
    check("100 allreduces in another order", independent(tf.zeros([3])).numpy().tolist() == [4950.0 * size] * 3)
    check("traced again", independent(tf.zeros([2, 2])).numpy().sum() == 4 * 4950 * size)


def pages():
    """Of this process, in memory."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1])


# TensorFlow would keep a kernel for each name, if it were an attribute: 30 MB for these.
before = pages()
for i in range(1000):
    hvd.allreduce(tf.ones([1]), name=f"eager{i}")
check("memory for names", (pages() - before) * resource.getpagesize() < 15e6, pages() - before)


@tf.function
def traced(x):
    return hvd.allreduce(x, op=hvd.Sum) + hvd.allreduce(2 * x, op=hvd.Sum, name="second")


if rank == 0:
    traced.get_concrete_function(tf.TensorSpec([7]))  # a trace that the others do not have changes no names
check("traces of one rank only", traced(tf.ones([2])).numpy().tolist() == [3.0 * size] * 2)


steps = tf.Variable(0)


def branches(yes):
    """TensorFlow counts branches over the whole graph, in the names of their nodes."""
    if rank == 0:
        with tf.name_scope("log"):
            tf.cond(yes, lambda: steps.assign_add(1), lambda: steps.assign_add(2))
    return tf.cond(yes, lambda: hvd.allreduce(tf.ones([1]), op=hvd.Sum), lambda: tf.zeros([1]))


in_branches = tf.function(branches, autograph=False)
check("a branch of one rank only", in_branches(tf.constant(True)).numpy().tolist() == [size])

variable, own = tf.Variable([1.0, 2.0]), tf.Variable([3.0])
with hvd.DistributedGradientTape(tf.GradientTape(persistent=True)) as tape:
    loss = tf.reduce_sum(variable * (rank + 1.0)) + tf.reduce_sum(own * (rank + 1.0))
mean = (size + 1) / 2
check("a tape's gradients", tape.gradient(loss, variable).numpy().tolist() == [mean, mean])
tape.register_local_source(own)
mine, others = tape.get_local_and_global_gradients(loss, [variable, own])
check("a local gradient", mine[0][0] is own and mine[0][1].numpy().tolist() == [(rank + 1) / size], mine)
check("the others", others[0][0] is variable and others[0][1].numpy().tolist() == [mean, mean], others)
table = tf.Variable(tf.ones([size, 1]))
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.gather(table, [rank]))
found = hvd.DistributedGradientTape(tape, sparse_as_dense=True).gradient(loss, [table, variable])
check("a sparse gradient, and none", found[1] is None and found[0].numpy().tolist() == [[1 / size]] * size, found)

with tf.GradientTape() as tape:
    loss = tf.reduce_sum(variable)
reduced = hvd.DistributedGradientTape(tape).gradient(loss, [variable])
from ddl.tensorflow.reduction import Reduction

fails("a tape and an optimizer", ValueError, ["DistributedGradientTape", "not both"],
      lambda: Reduction()(reduced, [variable]))
fails("a tape in a tape", ValueError, ["already"],
      lambda: hvd.DistributedGradientTape(hvd.DistributedGradientTape(tf.GradientTape())))

variable.assign([float(rank)] * 2)
hvd.broadcast_variables([variable, own], root_rank=size - 1)
check("broadcast_variables", variable.numpy().tolist() == [size - 1.0] * 2)
fails("variables that differ", ddl.Mismatch, ["variable 0", "rank"],
      lambda: hvd.broadcast_variables([tf.Variable(tf.zeros([rank + 1]))], 0))
fails("global variables, eagerly", RuntimeError, ["broadcast_variables"], lambda: hvd.broadcast_global_variables(0))
MISMATCH = tf.errors.FailedPreconditionError if BY_KERNELS else Exception
fails("other shapes", MISMATCH, ["named_x", "rank 0", "rank 1", "shape"],
      lambda: hvd.allreduce(tf.ones([rank + 1]), name="named_x"))
fails("other shapes in a function", MISMATCH, ["named_y", "rank 0", "rank 1", "shape"],
      tf.function(lambda: hvd.allreduce(tf.ones([rank + 1]), name="named_y")))
fails("other types in a function", MISMATCH, ["named_z", "float32", "float64"],
      tf.function(lambda: hvd.allreduce(tf.ones([1], tf.float64 if rank else tf.float32), name="named_z")))
fails("splits", tf.errors.InvalidArgumentError if BY_KERNELS else ddl.Error, ["splits"],
      lambda: hvd.alltoall(tf.ones([2]), splits=[-1, 3]))
fails("a root that is not there", ValueError, ["root_rank"], lambda: hvd.broadcast(tf.ones(1), size))
check("Adasum of equal values", hvd.allreduce(tf.ones(3), op=hvd.Adasum).numpy().tolist() == [1.0] * 3)
orthogonal = hvd.allreduce(tf.one_hot(rank, size), op=hvd.Adasum).numpy().tolist()
check("Adasum of orthogonal values", orthogonal == [1.0] * size)
fails("an optimizer with Adasum", NotImplementedError, ["Adasum"],
      lambda: hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1), op=hvd.Adasum))

# TensorFlow 1: two passes for each step, whose sums are combined, and an infinity does not stay.
with tf.Graph().as_default():
    weight = v1.get_variable("weight", initializer=[float(rank)])
    factor = v1.placeholder(tf.float32, [])
    optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), backward_passes_per_step=2)
    step = v1.train.create_global_step()
    train = optimizer.minimize(tf.reduce_sum(weight * factor * (rank + 1.0)), global_step=step)
    hook = hvd.BroadcastGlobalVariablesHook(0)
    with v1.train.MonitoredSession(hooks=[hook]) as session:
        values = []
        for one in (1.0, 2.0, np.inf, 1.0, 1.0, 1.0):
            session.run(train, {factor: one})
            values.append(float(session.run(weight)[0]))
        check("steps are counted", session.run(step) == 6)
    check("two passes", values[:4] == [0.0, -3 * mean, -3 * mean, -np.inf], values)
    sums = [name for name in (one.name for one in v1.local_variables()) if "passes" in name]
    check("sums are local variables", len(sums) == 2, sums)
with tf.Graph().as_default(), v1.Session() as session:
    weight = v1.get_variable("weight", initializer=[0.0])
    factor = v1.placeholder(tf.float32, [])
    optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), backward_passes_per_step=2)
    gradients = optimizer.compute_gradients(tf.reduce_sum(weight * factor))
    session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
    found = [float(session.run(gradients[0][0], {factor: one})[0]) for one in (np.inf, 1.0, 1.0, 2.0)]
    check("an infinity does not stay", found[1] == np.inf and found[3] == 3.0, found)

# A graph may run both broadcasts at once, as Horovod's synthetic benchmark has them.
with tf.Graph().as_default() as graph:
    some = [v1.get_variable(f"some{place}", initializer=[float(rank)] * (place + 1)) for place in range(2)]
    hvd.broadcast_variables(some, 0)
    hvd.broadcast_variables(some[::-1], 0)
    found = [one.get_attr("tensor_name") for one in graph.get_operations() if one.type == "DdlBroadcast"]
    check("names of two broadcasts of variables", len(set(found)) == (4 if BY_KERNELS else 0), found)

for one in wrong:
    print(f"rank {rank}: {one}", file=sys.stderr, flush=True)
print(f"ddl.tensorflow: rank {rank} of {size}: {f'{len(wrong)} wrong' if wrong else 'right'}", flush=True)
sys.exit(bool(wrong))
