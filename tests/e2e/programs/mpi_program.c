/* mpi_program sum|leave|abort CODE: a rank that is an MPI program. leave: as sum, and exits without MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  MPI_Init(&argc, &argv);
  int rank = -1, size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(argv[1], "abort") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
    for (;;) pause();
  }
  double mine[1000], all[1000];
  for (int i = 0; i < 1000; ++i) mine[i] = (rank + 1) * i;
  MPI_Allreduce(mine, all, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) wrong += all[i] != size * (size + 1) / 2.0 * i;
  printf("mpi rank %d of %d: %d wrong sums\n", rank, size, wrong);
  fflush(stdout);
  if (strcmp(argv[1], "leave") == 0) _exit(wrong != 0);
  MPI_Finalize();
  return wrong != 0;
}
