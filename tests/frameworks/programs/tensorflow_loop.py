"""TensorFlow's MultiWorkerMirroredStrategy with a training loop of its own."""
import tensorflow as tf

import problem

strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
rank, size = resolver.task_id, strategy.num_replicas_in_sync
inputs, targets = (tf.constant(part) for part in problem.share(rank, size))
with strategy.scope():
    weights = tf.Variable(problem.start(rank))


@tf.function
def step():
    def gradient():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(inputs @ weights - targets))
        return tape.gradient(loss, weights)

    mean = strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.run(gradient), axis=None)
    weights.assign_sub(problem.RATE * mean)


for _ in range(problem.STEPS):
    step()
problem.report("tensorflow", rank, size, weights.numpy(), workers=resolver.task_type == "worker")
