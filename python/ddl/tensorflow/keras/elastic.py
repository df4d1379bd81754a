"""ddl.keras.elastic for the Keras of TensorFlow, tensorflow.keras."""
from tensorflow import keras

from ddl._training import run_elastic as run
from ddl.elastic import HorovodInternalError, HostsUpdatedInterrupt, ObjectState, State
from ddl.keras._elastic import CommitState, UpdateBatchState, UpdateEpochState
from ddl.keras._state import KerasState

TensorFlowKerasState = KerasState

__all__ = [
    "CommitStateCallback", "HorovodInternalError", "HostsUpdatedInterrupt", "KerasState", "ObjectState", "State",
    "TensorFlowKerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run",
]


class CommitStateCallback(CommitState, keras.callbacks.Callback):
    __doc__ = CommitState.__doc__


class UpdateBatchStateCallback(UpdateBatchState, keras.callbacks.Callback):
    __doc__ = UpdateBatchState.__doc__


class UpdateEpochStateCallback(UpdateEpochState, keras.callbacks.Callback):
    __doc__ = UpdateEpochState.__doc__
