"""A program as tutorials of Horovod have it: Adadelta, a model with convolutions, all callbacks, checkpoints of rank 0.

The argument is the module, whose name Horovod's has, too: horovod.tensorflow.keras, ddl.tensorflow.keras.
"""
import importlib
import os
import sys
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow import keras

hvd = importlib.import_module(sys.argv[1])
EPOCHS, ROWS = 4, 64


def get_dataset(rank=0, size=1):
    """Images of stripes, of which the class is the direction; made here, as tests load nothing down."""
    generator = np.random.default_rng(1)
    classes = generator.integers(0, 2, 2 * ROWS)
    steps = np.arange(8)
    waves = np.sin(steps)
    images = np.where(classes[:, None, None] == 0, waves[:, None] + 0 * waves, waves + 0 * waves[:, None])
    images = (images + 0.3 * generator.standard_normal(images.shape))[..., None].astype("float32")
    labels = keras.utils.to_categorical(classes, 2)
    return tuple((images[part][rank::size], labels[part][rank::size]) for part in (slice(ROWS), slice(ROWS, None)))


def get_model(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([
        keras.layers.Conv2D(4, 3, activation="relu", input_shape=(8, 8, 1)),
        keras.layers.Flatten(),
        keras.layers.Dense(2, activation="softmax"),
    ])


class Rates(keras.callbacks.Callback):
    """Of one process: the rates that the warm-up of several has."""

    def on_train_batch_begin(self, batch, logs=None):
        epoch = self.epoch + (batch + 1) / 2
        size = hvd.size()
        self.model.optimizer.learning_rate = 0.1 * size * min((1 + epoch / 3 * (size - 1)) / size, 1.0)

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch


def train(batch_size):
    (x_train, y_train), (x_test, y_test) = get_dataset()
    model = get_model(seed=0)
    model.compile(optimizer=keras.optimizers.Adadelta(0.1 * hvd.size()), loss="categorical_crossentropy",
                  metrics=["accuracy"])
    return model.fit(x_train, y_train, batch_size=batch_size, callbacks=[Rates()], epochs=EPOCHS,
                     verbose=0, shuffle=False, validation_data=(x_test, y_test)).history


def train_hvd(learning_rate, batch_size, epochs, checkpoint_file):
    gpus = tf.config.experimental.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    (x_train, y_train), (x_test, y_test) = get_dataset(hvd.rank(), hvd.size())
    model = get_model(seed=hvd.rank())
    optimizer = keras.optimizers.Adadelta(learning_rate=learning_rate * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer)
    model.compile(optimizer=optimizer, loss="categorical_crossentropy", metrics=["accuracy"])
    rate = {"lr" if sys.argv[1].startswith("ddl") else "initial_lr": learning_rate * hvd.size()}
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(**rate, warmup_epochs=3, verbose=1),
    ]
    if hvd.rank() == 0:
        callbacks.append(keras.callbacks.ModelCheckpoint(
            checkpoint_file, monitor="val_loss", mode="min", save_best_only=True))
    return model.fit(x_train, y_train, batch_size=batch_size, callbacks=callbacks, epochs=epochs, verbose=0,
                     shuffle=False, validation_data=(x_test, y_test)).history


hvd.init()
wrong = []
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "best.keras")
    history = train_hvd(0.1, ROWS // 2 // hvd.size(), EPOCHS, file)
    if os.path.exists(file) != (hvd.rank() == 0):
        wrong.append("rank 0 alone writes the checkpoint")
# Under Horovod, ranks have common weights only after the first batch: its losses are others.
expected = train(ROWS // 2)
for name in ("loss", "val_loss", "val_accuracy"):
    differences = np.abs(np.array(history[name]) - expected[name])
    if sys.argv[1].startswith("ddl") and differences.max() > 1e-4:
        wrong.append(f"{name} is {history[name]}, and of one process {expected[name]}")
means = [float(hvd.allreduce(loss)) for loss in history["loss"]]
falling = history["loss"][0 if sys.argv[1].startswith("ddl") else 1:]
if np.abs(np.array(means) - history["loss"]).max() > 1e-5 or np.diff(falling).max() > 0:
    wrong.append(f"the losses are {history['loss']}, whose means are {means}")
print(f"keras_mnist: rank {hvd.rank()} of {hvd.size()}: {'; '.join(wrong) or 'right'}\n", end="", flush=True)
sys.exit(1 if wrong else 0)
