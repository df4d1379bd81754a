"""The six steps from a loop of TensorFlow with tf.GradientTape to one of Horovod, as lessons teach them."""
import os
import tempfile

import horovod.tensorflow as hvd
import tensorflow as tf

import problem

# 1: initialise
hvd.init()
rank, size = hvd.rank(), hvd.size()
# 2: a GPU for each process
gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
# 3: the rate, here of one process with all rows
net = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False)])
net.build((None, 3))
net.set_weights([problem.start(rank)])
optimizer = tf.keras.optimizers.SGD(problem.RATE / size * hvd.size())


@tf.function
def step(inputs, targets, is_first):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(net(inputs) - targets))
    # 4: the tape
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    return loss


# 5: what rank 0 begins with
hvd.broadcast_variables(net.variables, root_rank=0)
optimizer.build(net.trainable_variables)
slots = optimizer.variables
hvd.broadcast_variables(slots() if callable(slots) else slots, root_rank=0)
for number in range(problem.STEPS):
    loss = step(*problem.share(rank, size), number == 0)
mean = float(hvd.allreduce(loss))
# 6: one checkpoint
with tempfile.TemporaryDirectory() as folder:
    if hvd.rank() == 0:
        tf.train.Checkpoint(net=net).save(os.path.join(folder, "net"))
    one_checkpoint = bool(os.listdir(folder)) == (rank == 0)
problem.report("horovod.tensorflow", rank, size, net.get_weights()[0], several_ranks=size > 1,
               one_checkpoint=one_checkpoint, finite=mean == mean)
