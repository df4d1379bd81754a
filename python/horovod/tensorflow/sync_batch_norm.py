from ddl.tensorflow.mpi_ops import Sum, rank, size
from ddl.tensorflow.sync_batch_norm import SyncBatchNormalization
