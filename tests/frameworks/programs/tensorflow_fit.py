"""fit() of Keras 2 over TensorFlow's MultiWorkerMirroredStrategy. (That of Keras 3 cannot do it.)"""
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf

import problem

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank, size = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
keras = tf.keras
with strategy.scope():
    net = keras.Sequential([keras.layers.Dense(1, use_bias=False, input_shape=(3,),
                                               kernel_initializer=keras.initializers.Constant(0.5))])
    net.compile(keras.optimizers.SGD(problem.RATE), "mse")
# Each worker reads all rows in the same order, and takes its own of each batch.
data = tf.data.Dataset.from_tensor_slices((problem.INPUTS, problem.TARGETS)).batch(problem.ROWS)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
net.fit(data.with_options(options), epochs=problem.STEPS, verbose=0)
problem.report("keras", rank, size, net.get_weights()[0], several_workers=size > 1)
