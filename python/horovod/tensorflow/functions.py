from ddl.tensorflow.functions import *
from ddl.tensorflow.mpi_ops import ProcessSet, allgather, broadcast, broadcast_, global_process_set, rank, size
