"""What the programs of ddl.keras train, and how they say what is wrong.

Arguments of each: the module, ddl.keras or ddl.tensorflow.keras; then folders of packages that its environment lacks.
"""
import importlib
import sys

sys.path.extend(sys.argv[2:])
import numpy as np

hvd = importlib.import_module(sys.argv[1])
keras = importlib.import_module("keras") if sys.argv[1] == "ddl.keras" else importlib.import_module("tensorflow").keras
IS_KERAS_3 = getattr(keras, "__version__", "2").startswith("3")
BACKEND = keras.config.backend() if IS_KERAS_3 else "tensorflow"

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
INPUTS = np.cos(np.arange(24 * 3, dtype=np.float32)).reshape(24, 3)
TARGETS = np.tanh(INPUTS.sum(axis=1, keepdims=True))
_wrong = []


def net(start=0):
    """A model whose weights depend on start alone."""
    layers = keras.layers
    made = keras.Sequential([keras.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(1)])
    shapes = [weight.shape for weight in made.get_weights()]
    made.set_weights([np.sin(start + np.arange(np.prod(shape), dtype=np.float32)).reshape(shape) for shape in shapes])
    return made


def share(array):
    """This rank's rows, as many as every other's."""
    return array[RANK::SIZE]


def value(variable):
    return np.array(keras.ops.convert_to_numpy(variable) if IS_KERAS_3 else variable.numpy())


def difference(some, others):
    return max(float(np.abs(np.asarray(one) - np.asarray(other)).max()) for one, other in zip(some, others))


def expect(holds, text):
    if not holds:
        _wrong.append(text)


def expect_near(found, wanted, what):
    expect(difference([found], [wanted]) < 1e-5, f"{what} is {found}, not {wanted}")


def expect_error(kind, part, function, *arguments, **named):
    """The function raises an error with these words, on this rank."""
    try:
        function(*arguments, **named)
    except kind as error:
        expect(part in str(error), f"the error says: {error}")
    else:
        expect(False, f'there is no error "{part}"')


def report():
    """Ends the process with 1 if something is wrong."""
    line = "; ".join(_wrong) or "right"
    print(f"{sys.argv[0].rpartition('/')[2]}: rank {RANK} of {SIZE}: {line}\n", end="", flush=True)
    sys.exit(1 if _wrong else 0)
