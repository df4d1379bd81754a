// MPI's collectives on floats.
#include <mpi.h>

#include "bench/contenders/measured_rank.h"

namespace {

using namespace ddl::bench;

int make_call(Collective what, const Buffers& of) {
  const int count = of.count;
  const int part = of.part;
  switch (what) {
    case Collective::kAllreduce:
      return MPI_Allreduce(MPI_IN_PLACE, of.recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case Collective::kAllgather:
      return MPI_Allgather(of.send, part, MPI_FLOAT, of.recv, part, MPI_FLOAT, MPI_COMM_WORLD);
    case Collective::kAlltoall:
      return MPI_Alltoall(of.send, part, MPI_FLOAT, of.recv, part, MPI_FLOAT, MPI_COMM_WORLD);
    case Collective::kBroadcast: return MPI_Bcast(of.recv, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    case Collective::kReduceScatter:
      return MPI_Reduce_scatter_block(of.send, of.recv, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  return MPI_ERR_OTHER;
}

}  // namespace

int main(int argc, char** argv) {
  auto job = join_benchmark(argc, argv);
  if (!job) return fail_rank(job.error());
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  job->scoreboard.on_long_wait([] {
    int has_message = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &has_message, MPI_STATUS_IGNORE);
  });
  ddl::Status status = check_world(*job, rank, size);
  if (status) {
    status = measure(*job, Expect::kResults, [](Collective what, const Buffers& buffers) {
      return make_call(what, buffers) == MPI_SUCCESS ? buffers.recv : nullptr;
    });
  }
  if (!status) {
    fail_rank(status.error());
    MPI_Abort(MPI_COMM_WORLD, 1);  // the other ranks may be waiting for this one
  }
  MPI_Finalize();
}
