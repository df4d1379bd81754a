"""What lessons on Horovod print to see what it was built with."""
import horovod.tensorflow as hvd

hvd.init()
for built, feature in (
    (hvd.rocm_built(), "ROCm"), (hvd.cuda_built(), "CUDA"), (hvd.mpi_enabled(), "MPI, in use"),
    (hvd.mpi_built(), "MPI"),
    (hvd.nccl_built(), "NCCL"), (hvd.mpi_enabled() and hvd.mpi_threads_supported(), "MPI with threads"),
):
    print(f"Horovod is{'' if built else ' NOT'} compiled with support for {feature}")
print("Hello, rank = %d, local_rank = %d, size = %d, local_size = %d: right"
      % (hvd.rank(), hvd.local_rank(), hvd.size(), hvd.local_size()))
