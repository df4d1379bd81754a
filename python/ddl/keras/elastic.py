"""States of training by Horovod's names. The number of ranks stays as it is: a rank's death ends the job."""
import keras

from ddl.keras import _elastic
from ddl.keras._elastic import KerasState, run


class CommitStateCallback(_elastic.CommitState, keras.callbacks.Callback):
    __doc__ = _elastic.CommitState.__doc__


class UpdateBatchStateCallback(_elastic.UpdateBatchState, keras.callbacks.Callback):
    __doc__ = _elastic.UpdateBatchState.__doc__


class UpdateEpochStateCallback(_elastic.UpdateEpochState, keras.callbacks.Callback):
    __doc__ = _elastic.UpdateEpochState.__doc__
