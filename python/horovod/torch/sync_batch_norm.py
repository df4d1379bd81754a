from ddl.torch.mpi_ops import Sum, allgather_async, allreduce_async, size, synchronize
from ddl.torch.sync_batch_norm import SyncBatchNorm
