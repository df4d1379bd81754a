"""States and callbacks of Keras for training whose ranks go on when one is lost: Horovod's names, run by libddl.

    import ddl.tensorflow.keras as hvd

    @hvd.elastic.run
    def train(state):
        while state.epoch < 10:
            data = batches_of(state.epoch, hvd.rank(), hvd.size()).skip(state.batch)
            state.model.fit(data, epochs=1, steps_per_epoch=STEPS - state.batch, callbacks=[
                hvd.elastic.UpdateBatchStateCallback(state), hvd.elastic.UpdateEpochStateCallback(state),
                hvd.elastic.CommitStateCallback(state, batches_per_commit=10)])

    hvd.init()
    train(hvd.elastic.KerasState(model, epoch=0, batch=0))

``ddl.elastic`` says what run() and the functions of a state do.
"""
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
