// MPI_Allreduce(MPI_IN_PLACE) of floats.
#include <mpi.h>

#include <cstddef>

#include "bench/entrants/measuring_loop.h"

int main(int argc, char** argv) {
  using namespace ddl::bench;
  auto job = join_benchmark(argc, argv);
  if (!job) return fail_rank(job.error());
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  ddl::Status status = check_world(*job, rank, size);
  if (status) {
    status = measure(*job, Expect::kSum, [](float* data, std::size_t count) {
      return MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) ==
             MPI_SUCCESS;
    });
  }
  if (!status) {
    fail_rank(status.error());
    MPI_Abort(MPI_COMM_WORLD, 1);  // the other ranks may be waiting for this one
  }
  MPI_Finalize();
}
