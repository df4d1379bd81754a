"""Horovod with Keras, and its callbacks."""
import horovod.tensorflow.keras as hvd
import tensorflow as tf

import problem

keras = tf.keras
hvd.init()
rank, size = hvd.rank(), hvd.size()
net = keras.Sequential([keras.layers.Dense(1, use_bias=False, input_shape=(3,))])
net.set_weights([problem.START])
net.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(problem.RATE)), "mse")
inputs, targets = problem.share(rank, size)
history = net.fit(inputs, targets, batch_size=problem.ROWS, epochs=problem.STEPS, verbose=0,
                  callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()])
loss = history.history["loss"][-1]
mean = float(hvd.allreduce(loss))
problem.report("horovod.keras", rank, size, net.get_weights()[0], several_ranks=size > 1,
               same_loss=abs(loss - mean) <= 1e-6 * abs(mean))
