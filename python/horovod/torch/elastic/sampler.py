from ddl.torch.elastic import ElasticSampler
from ddl.torch.mpi_ops import rank, size
