"""Learns to read handwritten digits (MNIST) with Keras, on several ranks.

    ddlrun -np 4 python mnist_keras.py --data DIRECTORY     with the four files of MNIST, packed by gzip or not
    ddlrun -np 4 python mnist_keras.py                      with digits that the program draws itself

What a program of one process needs to run on several ranks is in six steps, marked below.
"""
import argparse
from pathlib import Path

import tensorflow as tf
from tensorflow import keras

import ddl.tensorflow.keras as hvd
from digits import BadFile, draw_digits, read_digits


def network():
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
        keras.layers.Conv2D(32, 5, strides=2, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10),
    ])


def share_of(images, labels):
    """Those of this rank: every size()-th. All ranks have as many, so that they make the same number of steps."""
    own = slice(hvd.rank(), len(labels) // hvd.size() * hvd.size(), hvd.size())
    return images[own, :, :, None].astype("float32") / 255, labels[own]


def newest(folder):
    """How many epochs the newest checkpoint has, and its file."""
    files = sorted(folder.glob("epoch-*.keras"))
    return (int(files[-1].stem.split("-")[1]), files[-1]) if files else (0, None)


def save(model, folder, epochs):
    """Whenever the job is killed, the newest checkpoint is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / "unfinished.keras"
    model.save(unfinished)
    unfinished.replace(folder / f"epoch-{epochs:04}.keras")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIRECTORY", help="where the files of MNIST are")
    parser.add_argument("--samples", type=int, default=10000, help="to train with, without --data")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32, help="samples of each rank in a step")
    parser.add_argument("--rate", type=float, default=0.02, help="the learning rate of one rank")
    parser.add_argument("--checkpoint", type=Path, metavar="DIRECTORY",
                        help="go on from the newest file there, and write one after each epoch")
    options = parser.parse_args()
    if min(options.samples, options.epochs, options.batch) < 1:
        parser.error("--samples, --epochs and --batch are at least 1")

    # Step 1: join the job. ddlrun has told each process its rank.
    hvd.init()

    # Step 2: each rank of a host has a GPU of its own, by its number on the host.
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")

    try:
        if options.data:
            train, test = read_digits(options.data, "train"), read_digits(options.data, "t10k")
        else:
            train, test = draw_digits(options.samples, seed=1), draw_digits(2000, seed=2)
    except BadFile as error:
        raise SystemExit(f"mnist_keras.py: {error}") from None
    images, labels = share_of(*train)
    if len(labels) == 0:
        raise SystemExit(f"mnist_keras.py: {options.samples} samples are fewer than the {hvd.size()} ranks")

    # Step 3: a step uses the samples of all ranks, so the learning rate is that of one rank times their number. The
    # first epoch leads up to it.
    rate = options.rate * hvd.size()
    warmup = hvd.callbacks.LearningRateWarmupCallback(rate, warmup_epochs=1)

    # Step 4: the optimizer averages the gradients of all ranks.
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(rate, momentum=0.9))
    keras.utils.set_random_seed(hvd.rank())
    model = network()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"])

    # Step 5: all ranks start with the weights of rank 0, or of the checkpoint that it reads, and so do the optimizers.
    # The rate of the checkpoint was that of another number of ranks, perhaps. What is told of an epoch is the mean over
    # all ranks.
    first = 0
    if options.checkpoint:
        first, saved = newest(options.checkpoint) if hvd.rank() == 0 else (0, None)
        if saved:
            model = hvd.load_model(saved)
            model.optimizer.learning_rate = rate
        first = int(hvd.broadcast(first, root_rank=0))
        if first >= options.epochs:
            raise SystemExit(f"mnist_keras.py: the checkpoint has {first} epochs already")
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback(), warmup]

    # Step 6: rank 0 alone prints and writes the checkpoint.
    def end_epoch(epoch, logs):
        print(f"epoch {epoch + 1}  loss {logs['loss']:.4f}  accuracy {logs['val_accuracy']:.4f}", flush=True)
        if options.checkpoint:
            save(model, options.checkpoint, epoch + 1)

    if hvd.rank() == 0:
        callbacks.append(keras.callbacks.LambdaCallback(on_epoch_end=end_epoch))

    history = model.fit(images, labels, batch_size=options.batch, initial_epoch=first, epochs=options.epochs,
                        callbacks=callbacks, validation_data=share_of(*test), verbose=0).history
    if hvd.rank() == 0:
        count = len(test[1]) // hvd.size() * hvd.size()
        print(f"{hvd.size()} ranks: accuracy {history['val_accuracy'][-1]:.4f} over {count} images", flush=True)


if __name__ == "__main__":
    main()
