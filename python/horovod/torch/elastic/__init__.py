"""The names of horovod.torch.elastic."""
from ddl.torch.elastic import ElasticSampler, TorchState, run
from ddl.torch.mpi_ops import init, shutdown
from horovod.common.elastic import ObjectState, run_fn
