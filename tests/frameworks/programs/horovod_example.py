"""One of Horovod's elastic examples, as it stands, of whose four ranks one kills itself in the middle.

    horovod_example.py FILE DIES AFTER [ARGUMENT...]    the rank, and its commits until then

Data and models that the examples load down are made here instead: small ones. PyTorch's examples need torchvision and
filelock, of which there is as much here as they use.
"""
import contextlib
import os
import runpy
import signal
import sys
import tempfile
import types

import numpy as np

file, dies, after, SIZE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), 4
ROWS = 512
commits = 0
tempfile.tempdir = os.getcwd()  # which has checkpoints, too: a rank that is killed leaves files


def images(shape):
    """Bright on the left or dark: even classes, or odd ones."""
    generator = np.random.default_rng(1)
    classes = generator.integers(0, 10, ROWS)
    pixels = generator.integers(0, 100, (ROWS, *shape))
    pixels[..., :shape[-1] // 2] += 100 * (1 - classes % 2)[:, None, None]
    return pixels.astype(np.uint8), classes.astype(np.uint8)


def module(name, **names):
    found = sys.modules[name] = types.ModuleType(name)
    vars(found).update(names)
    return found


def stand_in_torchvision():
    """What the examples take of torchvision, and of filelock."""
    import torch

    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.last = torch.nn.Linear(3 * 4 * 4, 1000)

        def forward(self, inputs):
            return self.last(torch.nn.functional.adaptive_avg_pool2d(inputs, 4).flatten(1))

    class Mnist(torch.utils.data.TensorDataset):
        def __init__(self, folder, train=True, download=False, transform=None):
            pixels, classes = images((28, 28))
            super().__init__(torch.from_numpy(pixels / np.float32(255))[:, None], torch.from_numpy(classes).long())

    module("torchvision", models=module("torchvision.models", small=Small),
           datasets=module("torchvision.datasets", MNIST=Mnist),
           transforms=types.SimpleNamespace(Compose=list, ToTensor=bool, Normalize=lambda *values: values))
    module("filelock", FileLock=contextlib.nullcontext)


def stand_in_keras():
    """What the examples take of Keras's data and models."""
    from tensorflow import keras

    def small(weights=None):
        return keras.Sequential([keras.layers.AveragePooling2D(56, input_shape=(224, 224, 3)), keras.layers.Flatten(),
                                 keras.layers.Dense(1000, activation="softmax")])

    fit = keras.Model.fit

    def shorter(model, *arguments, epochs=1, verbose=1, **named):
        return fit(model, *arguments, epochs=max(1, epochs - 21), verbose=2, **named)

    keras.Model.fit = shorter  # an example has 24 epochs
    keras.applications.Small = small
    keras.datasets.mnist.load_data = lambda path: (images((10, 10)), images((10, 10)))


def die_in_the_middle(hvd):
    """After a commit, so that the others find out in a step."""
    (owner,) = [one for one in hvd.elastic.State.__mro__ if "commit" in vars(one)][:1]
    commit = owner.commit

    def counted(state, *arguments):
        global commits
        commit(state, *arguments)
        commits += 1
        if commits == after and hvd.rank() == dies and hvd.size() == SIZE:
            os.kill(os.getpid(), signal.SIGKILL)

    owner.commit = counted


if "pytorch" in file:
    stand_in_torchvision()
    import horovod.torch as hvd
    import horovod.torch.elastic
else:
    stand_in_keras()
    import horovod.tensorflow as hvd
    import horovod.tensorflow.elastic
import horovod.common.elastic  # of which all states are

die_in_the_middle(types.SimpleNamespace(elastic=horovod.common.elastic, rank=hvd.rank, size=hvd.size))
sys.argv = [file, *sys.argv[4:]]
runpy.run_path(file, run_name="__main__")
right = hvd.size() == SIZE - 1 and commits > after
print(f"horovod_example.py: rank {hvd.rank()} of {hvd.size()}, {commits} commits{': right' if right else ''}\n", end="",
      flush=True)
sys.exit(0 if right else 1)
