"""States of training by Horovod's names. The number of ranks does not change: if a rank dies, the job ends."""
from tensorflow import keras

from ddl.keras._elastic import CommitState, KerasState, UpdateBatchState, UpdateEpochState, run


class CommitStateCallback(CommitState, keras.callbacks.Callback):
    __doc__ = CommitState.__doc__


class UpdateBatchStateCallback(UpdateBatchState, keras.callbacks.Callback):
    __doc__ = UpdateBatchState.__doc__


class UpdateEpochStateCallback(UpdateEpochState, keras.callbacks.Callback):
    __doc__ = UpdateEpochState.__doc__
