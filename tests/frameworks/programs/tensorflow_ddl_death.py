"""The last rank is killed while the others are in fit() and wait for its gradients. Their error must name it."""
import os
import signal

# ddlrun asks the others to end; they are to say first what they have seen.
signal.signal(signal.SIGTERM, signal.SIG_IGN)

import ddl.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

keras = tf.keras
hvd.init()
rank, last = hvd.rank(), hvd.size() - 1


class Die(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 1 and rank == last:
            os.kill(os.getpid(), signal.SIGKILL)


model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD()), "mse")
try:
    model.fit(np.ones((4, 1)), np.ones((4, 1)), batch_size=1, verbose=0, callbacks=[Die()])
    print(f"rank {rank}: no error was raised", flush=True)
except tf.errors.OpError as error:
    is_told = f"rank {last} on " in str(error) and " died " in str(error)
    print(f"rank {rank}: {'told' if is_told else 'not told'}: {error}", flush=True)
os._exit(3)
