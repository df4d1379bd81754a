"""Steps of fit(), whose gradients one of several ways averages. A rank of compare.py keras; rank 0 prints JSON.

    keras_step.py WAY MODEL STEPS

WAY is none (one process, no averaging), ddl.keras, horovod or strategy (MultiWorkerMirroredStrategy). The model
resnet50 has the parameters of ResNet-50 and no computation but the gradients themselves; conv is a small convolutional
network that computes. All are of tf.keras, which is Keras 2 if tf_keras is installed or TensorFlow is older than 2.16.
"""
import contextlib
import importlib.util
import json
import os
import statistics
import sys
import time

if importlib.util.find_spec("tf_keras"):
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf
from tensorflow import keras

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples/python"))
import gradient_models

WARM_UP, BATCH = 5, 16
MODULES = {"ddl.keras": "ddl.tensorflow.keras", "horovod": "horovod.tensorflow.keras"}


class Parameters(keras.layers.Layer):
    """The parameters of a model, which the loss depends on by their sums."""

    def build(self, shape):
        shapes = [shape for layer in gradient_models.MODELS["resnet50"] for shape in layer.shapes]
        self.all = [self.add_weight(name=f"w{i}", shape=shape, initializer="zeros") for i, shape in enumerate(shapes)]

    def call(self, x):
        return x * tf.add_n([tf.reduce_sum(one) for one in self.all])


def model_of(name):
    layers = keras.layers
    if name == "resnet50":
        return keras.Sequential([layers.Input((1,)), Parameters()])
    return keras.Sequential([
        layers.Input((28, 28, 1)), layers.Conv2D(16, 3, padding="same", activation="relu"), layers.MaxPool2D(2),
        layers.Conv2D(32, 3, padding="same", activation="relu"), layers.MaxPool2D(2), layers.Flatten(),
        layers.Dense(128, activation="relu"), layers.Dense(1),
    ])


class Times(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self._supports_tf_logs = True
        self.ends = []

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(time.perf_counter())


def main():
    way, name, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    tf.config.threading.set_intra_op_parallelism_threads(1)
    rank, size, scope, callbacks = 0, 1, contextlib.nullcontext(), []
    if way == "strategy":  # before any variable is made
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        rank, size, scope = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync, strategy.scope()
    elif way != "none":
        hvd = importlib.import_module(MODULES[way])
        hvd.init()
        rank, size = hvd.rank(), hvd.size()
        callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
    with scope:
        model, optimizer = model_of(name), keras.optimizers.SGD(0.001)
        model.compile(hvd.DistributedOptimizer(optimizer) if callbacks else optimizer, "mse")
    # A strategy divides a batch among its workers.
    rows = BATCH * (size if way == "strategy" else 1)
    inputs, targets = (np.ones((rows, *shape[1:]), "float32") for shape in (model.input_shape, model.output_shape))
    data = tf.data.Dataset.from_tensors((inputs, targets))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    times = Times()
    model.fit(data.repeat(WARM_UP + steps).with_options(options), epochs=1, verbose=0, callbacks=[*callbacks, times])
    ms = [1000 * (end - begin) for begin, end in zip(times.ends[WARM_UP - 1 :], times.ends[WARM_UP:])]
    sizes = [int(np.prod(one.shape)) for one in model.trainable_variables]
    if rank == 0:
        print(json.dumps({"ms": statistics.median(ms), "tensors": len(sizes), "parameters": sum(sizes),
                          "framework": f"TensorFlow {tf.__version__}, Keras {3 if hasattr(keras, 'ops') else 2}"}))


main()
