"""fit() on all ranks, each with some of the rows, is fit() of one process with all of them. Then the model is saved."""
import os
import subprocess
import sys
import tempfile

from keras_problem import *

EPOCHS = 4
# Of a process that has no ddl.
LOADS = """
import sys
sys.path.extend(sys.argv[3:])
import numpy as np
if sys.argv[2] == "ddl.keras":
    import keras
else:
    from tensorflow import keras
model = keras.models.load_model(sys.argv[1])
assert not any(name.split(".")[0] == "ddl" for name in sys.modules)
print(type(model.optimizer).__name__, int(np.array(model.optimizer.iterations)))
"""


def optimizer():
    return keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True)


class Own(keras.optimizers.SGD):
    """An optimizer that Keras does not know."""


alone = net()
alone.compile(optimizer(), "mse", metrics=["mae"])
losses = alone.fit(INPUTS, TARGETS, batch_size=24, epochs=EPOCHS, verbose=0, shuffle=False).history

# Ranks start with other weights than rank 0, which they have before the first batch.
model = net(start=RANK)
distributed = hvd.DistributedOptimizer(optimizer())
model.compile(distributed, "mse", metrics=["mae"])
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
history = model.fit(share(INPUTS), share(TARGETS), batch_size=24 // SIZE, epochs=EPOCHS, verbose=0, shuffle=False,
                    callbacks=callbacks).history
expect(difference(alone.get_weights(), model.get_weights()) < 1e-5, "the weights differ from those of one process")
for name in ("loss", "mae"):
    expect_near(history[name], losses[name], name)

# It is the optimizer's class by another base, and its own configuration makes it again.
kind = type(optimizer())
expect(isinstance(distributed, kind) and type(distributed).__module__ == kind.__module__, "the class differs")
config = distributed.get_config()
expect(type(distributed).from_config(config).get_config() == config, "from_config() makes another one")
expect_error(ValueError, "a DistributedOptimizer already", hvd.DistributedOptimizer, distributed)

with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "model.keras")
    model.save(file)
    if RANK == 0:
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        words = subprocess.run([sys.executable, "-c", LOADS, file, *sys.argv[1:]], env=plain, stdout=subprocess.PIPE,
                               text=True, check=False).stdout.split()
        expect(words == ["SGD", str(EPOCHS)], f"a process without ddl loads {words}")
    loaded = hvd.load_model(file)
    other = net()
    other.compile(hvd.DistributedOptimizer(Own(0.1)), "mse")
    file = os.path.join(folder, "own.keras")
    other.save(file)
    for known in ({"custom_optimizers": [Own]}, {"custom_objects": {"Own": Own}}):
        own = hvd.load_model(file, compression=hvd.Compression.fp16, **known).optimizer
        expect(isinstance(own, Own) and own._ddl is not None, f"with {known}, the loaded optimizer is a {type(own)}")
expect(type(loaded.optimizer).__mro__[1].__module__.startswith("ddl."), "the loaded optimizer is not distributed")
expect(int(value(loaded.optimizer.iterations)) == EPOCHS, "the loaded optimizer begins anew")
for one in (alone, loaded):
    rows = (INPUTS, TARGETS) if one is alone else (share(INPUTS), share(TARGETS))
    one.fit(*rows, batch_size=24, epochs=1, verbose=0, shuffle=False)
expect(difference(alone.get_weights(), loaded.get_weights()) < 1e-5, "the loaded model goes on elsewhere")

ranks = np.arange(SIZE)
expect_near(value(hvd.allreduce(float(RANK))), ranks.mean(), "allreduce()")
expect_near(value(hvd.allreduce([RANK, 1.0], average=False)), [ranks.sum(), SIZE], "allreduce(average=False)")
expect_near(value(hvd.allgather([RANK] * (RANK + 1))), np.repeat(ranks, ranks + 1), "allgather()")
expect_near(value(hvd.broadcast([RANK, 2.5], SIZE - 1)), [SIZE - 1, 2.5], "broadcast()")
expect_near(value(hvd.reducescatter(np.arange(SIZE, dtype=np.float32))), [RANK], "reducescatter()")
report()
