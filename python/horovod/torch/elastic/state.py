from ddl.torch.elastic import (
    ElasticSampler,
    LRSchedulerStateHandler,
    ModelStateHandler,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateHandler,
    TorchState,
    get_handler_registry,
    set_handler_registry,
)
from ddl.torch.functions import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from ddl.torch.mpi_ops import rank
from horovod.common.elastic import ObjectState
