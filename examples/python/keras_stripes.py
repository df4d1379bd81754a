"""Training with Keras on any number of ranks, as programs of Horovod are: which way do the stripes of an image go?

    ddlrun --as-horovod -np 2 python keras_stripes.py
"""
import horovod.tensorflow.keras as hvd
import numpy as np
from tensorflow import keras

hvd.init()

# Each rank takes every size()-th image.
generator = np.random.default_rng(0)
classes = generator.integers(0, 2, 1024)
waves = np.sin(np.arange(16.0))
images = np.where(classes[:, None, None] == 0, waves[:, None] + 0 * waves, waves + 0 * waves[:, None])
images = (images + generator.standard_normal(images.shape))[..., None].astype("float32")
own = slice(hvd.rank(), None, hvd.size())

model = keras.Sequential([
    keras.Input((16, 16, 1)),
    keras.layers.Conv2D(8, 3, activation="relu"),
    keras.layers.GlobalMaxPooling2D(),
    keras.layers.Dense(1, activation="sigmoid"),
])
optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(1e-2 * hvd.size()))
model.compile(optimizer=optimizer, loss="binary_crossentropy", metrics=["accuracy"])
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(1e-2 * hvd.size(), warmup_epochs=2),
]
if hvd.rank() == 0:
    callbacks.append(keras.callbacks.ModelCheckpoint("stripes.keras", monitor="loss", save_best_only=True))
history = model.fit(images[own], classes[own], batch_size=32, epochs=4, callbacks=callbacks, verbose=0).history
if hvd.rank() == 0:
    for epoch, (loss, accuracy) in enumerate(zip(history["loss"], history["accuracy"])):
        print(f"epoch {epoch + 1}: loss {loss:.3f}, accuracy {accuracy:.3f}")
