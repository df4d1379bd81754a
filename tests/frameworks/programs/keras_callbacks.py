"""The callbacks of ddl.keras: rates by batch, velocities, weights before the first batch, metrics, and common ends."""
from keras_problem import *

callbacks = hvd.callbacks


class Record(keras.callbacks.Callback):
    """What the model has before each batch."""

    def __init__(self):
        super().__init__()
        self.rates, self.weights = [], []

    def on_train_batch_begin(self, batch, logs=None):
        getattr(self.model, "jax_state_sync", lambda: None)()
        self.rates.append(float(value(self.model.optimizer.learning_rate)))
        self.weights.append(self.model.get_weights())


class StopAfter(keras.callbacks.Callback):
    """Stops after an epoch, as EarlyStopping may."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self.epoch:
            self.model.stop_training = True


class StopInEpoch(keras.callbacks.Callback):
    """Stops in the middle of an epoch, as TerminateOnNaN may."""

    def on_train_batch_end(self, batch, logs=None):
        self.model.stop_training = True


class SlowDown(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.optimizer.learning_rate = 0.01 * (RANK + 1)


model = net(start=RANK)
model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.4, momentum=0.9)), "mse")


def fit(*chosen, epochs=1, batches=1, **options):
    record = Record()
    history = model.fit(share(INPUTS), share(TARGETS), batch_size=24 // SIZE // batches, epochs=epochs, verbose=0,
                        shuffle=False, callbacks=[*chosen, record], **options)
    return record, history


# Root's weights are there before the first batch, but for local ones. The rate grows from batch to batch.
local = model.layers[1].bias
own = float(RANK)
local.assign(np.full(local.shape, own))
start = callbacks.BroadcastGlobalVariablesCallback(SIZE - 1, local_variables=[local])
record, history = fit(start, callbacks.LearningRateWarmupCallback(lr=0.4, warmup_epochs=2, steps_per_epoch=4),
                      epochs=3, batches=4)
expect_near(record.weights[0][0], net(start=SIZE - 1).get_weights()[0], "the first kernel before the first batch")
expect_near(record.weights[0][3], [own], "the local variable before the first batch")
grown = [0.4 / SIZE * (1 + (batch + 1) / 4 * (SIZE - 1) / 2) for batch in range(8)]
expect_near(record.rates[:8], grown, "the rates of the warm-up")
expect_near(record.rates[8:], [0.4] * 4, "the rates after it")
expect_near(history.history["lr"][-1], 0.4, "the rate in the history")

# A number is a power, by epochs; a function is taken by parts of epochs if asked.
power = callbacks.LearningRateScheduleCallback(0.4, 0.5, start_epoch=1, end_epoch=3)
record, _ = fit(power, epochs=4, batches=2)
expect_near(record.rates, [0.4, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2], "the rates by a power")
parts = callbacks.LearningRateScheduleCallback(initial_lr=0.1, multiplier=lambda epoch: 1 + epoch, staircase=False)
record, _ = fit(parts, epochs=2, batches=2)
expect_near(record.rates, [0.1, 0.15, 0.2, 0.25], "the rates by parts of epochs")
for wrong in ({}, {"lr": 1.0, "initial_lr": 1.0}):
    expect_error(ValueError, "initial_lr", callbacks.LearningRateWarmupCallback, **wrong)

# With momentum, velocities are scaled as the rate is.
velocities = [value(one) for one in model.optimizer.momentums]
half = callbacks.LearningRateScheduleCallback(0.125, lambda epoch: 1.0)
half.set_model(model)
half.on_epoch_begin(0)
half.on_train_batch_begin(0)
expect(difference([0.5 * one for one in velocities], [value(one) for one in model.optimizer.momentums]) < 1e-6,
       "the velocities are not halved")

# Means for callbacks that follow. A rank that stops before them stops all.
average = callbacks.MetricAverageCallback()
_, history = fit(*([StopAfter(1)] if RANK == SIZE - 1 else []), average, epochs=5)
expect(len(history.history["loss"]) == 2, f"there were {len(history.history['loss'])} epochs")
losses = value(hvd.allgather(history.history["loss"][-1]))
expect(losses.max() == losses.min(), f"the mean losses are {losses}")
# One that stops behind them is an error on all ranks: the others would wait for its gradients.
expect_error(RuntimeError, f"rank 0 has ended training after 1 epochs, and rank 1 goes on", fit, average,
             *([StopAfter(0)] if RANK == 0 else []), epochs=3)
# A rank that ends an epoch before the others, because it stops or has less data, is an error on all ranks, too.
for chosen in ([average], [callbacks.BroadcastGlobalVariablesCallback(0)]):
    steps = int(value(model.optimizer.iterations))
    expect_error(RuntimeError, f"after epoch 1, the optimizer has taken {steps + 1} steps on rank 1 and {steps + 3} on "
                 "rank 0", fit, *chosen, *([StopInEpoch()] if RANK == 1 else []), batches=3)
    model.optimizer.iterations.assign(steps)
expect_error(Exception, f'metric "val_loss" is there on rank 0 and not on rank 1', fit, average,
             **({"validation_data": (INPUTS, TARGETS)} if RANK == 0 else {}))
expect_error(Exception, "0.01 on rank 0 and 0.02 on rank 1", fit, SlowDown(), average)

best = callbacks.BestModelCheckpoint(monitor="loss")
expect(best.save_best_only and best.monitor == "loss", "BestModelCheckpoint is another one")
report()
