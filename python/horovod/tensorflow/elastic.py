from ddl import rank
from ddl._horovod import init, shutdown
from ddl.tensorflow._variables import broadcast_variables
from ddl.tensorflow.elastic import (
    HorovodInternalError,
    HostsUpdatedInterrupt,
    TensorFlowState,
    __getattr__,
    run,
)
from ddl.tensorflow.functions import broadcast_object, broadcast_object_fn
from horovod.common.elastic import ObjectState, run_fn


def __dir__() -> list[str]:
    return sorted({*globals(), "TensorFlowKerasState"})
