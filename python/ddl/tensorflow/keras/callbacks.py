"""Callbacks for model.fit() of tf.keras, which may be another Keras than the package keras."""
from tensorflow import keras

from ddl.keras._callbacks import (
    BestModel,
    BroadcastGlobalVariables,
    LearningRateSchedule,
    LearningRateWarmup,
    MetricAverage,
)


class BroadcastGlobalVariablesCallback(BroadcastGlobalVariables, keras.callbacks.Callback):
    __doc__ = BroadcastGlobalVariables.__doc__


class MetricAverageCallback(MetricAverage, keras.callbacks.Callback):
    __doc__ = MetricAverage.__doc__


class LearningRateScheduleCallback(LearningRateSchedule, keras.callbacks.Callback):
    __doc__ = LearningRateSchedule.__doc__


class LearningRateWarmupCallback(LearningRateWarmup, keras.callbacks.Callback):
    __doc__ = LearningRateWarmup.__doc__


class BestModelCheckpoint(BestModel, keras.callbacks.ModelCheckpoint):
    __doc__ = BestModel.__doc__
