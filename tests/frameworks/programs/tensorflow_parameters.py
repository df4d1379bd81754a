"""TensorFlow's ParameterServerStrategy: a chief gives steps to workers, and the variables lie on parameter servers."""
import json
import os
import sys

import tensorflow as tf

import problem

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    # Serves the chief, and never ends by itself.
    tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id, protocol="grpc").join()
    sys.exit("the server has ended")

coordinator = tf.distribute.coordinator.ClusterCoordinator(tf.distribute.ParameterServerStrategy(resolver))
with coordinator.strategy.scope():
    weights = tf.Variable(problem.START)


@tf.function
def gradient(inputs, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(inputs @ weights - targets))
    return tape.gradient(loss, weights)


workers = len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"])
for _ in range(problem.STEPS):
    shares = [problem.share(worker, workers) for worker in range(workers)]
    gradients = [coordinator.schedule(gradient, args=[tf.constant(part) for part in share]) for share in shares]
    coordinator.join()
    weights.assign_sub(problem.RATE * sum(one.fetch() for one in gradients) / workers)
problem.report("parameter servers", 0, workers, weights.numpy(), on_a_server="ps" in weights.device)
