// MPI_Init() and MPI_Finalize(), nothing in between.
#include <mpi.h>

#include <cstdio>

#include "bench/idle_rank.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) std::fprintf(stderr, "MPI sees a world of one\n");
  const bool hold_succeeded = ddl::bench::hold_if_asked(argc, argv);
  MPI_Finalize();
  return hold_succeeded && size >= 2 ? 0 : 1;
}
