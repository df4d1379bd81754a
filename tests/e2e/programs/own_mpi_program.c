/* own_mpi_program single|funneled|serialized|multiple|finalized: an MPI program whose MPI libddl uses.
 *   single ... multiple  initialises MPI at this thread level, sums with both in turn, and uses MPI after libddl was
 *                        finalized; a second thread calls libddl, which works or is refused
 *   finalized            finalizes MPI first */
#include <ddl/ddl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { kCount = 1000 };

struct Sum {
  ddl_context* context;
  ddl_status status;
  int wrong;
  char error[512];
};

/* The number of wrong sums out of kCount. */
static void* sum(void* argument) {
  struct Sum* own = argument;
  static int32_t values[kCount];
  const int rank = ddl_rank(own->context), size = ddl_size(own->context);
  for (int i = 0; i < kCount; ++i) values[i] = rank + i;
  own->status = ddl_allreduce(own->context, values, values, kCount, DDL_INT32, DDL_SUM, NULL);
  own->wrong = 0;
  for (int i = 0; i < kCount; ++i) own->wrong += values[i] != size * (size - 1) / 2 + size * i;
  snprintf(own->error, sizeof own->error, "%s", own->status == DDL_OK ? "" : ddl_last_error());
  return NULL;
}

static int mpi_sum(void) {
  int one = 1, ranks = 0;
  MPI_Allreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return ranks;
}

static int level_of(const char* name) {
  return strcmp(name, "single") == 0       ? MPI_THREAD_SINGLE
         : strcmp(name, "funneled") == 0   ? MPI_THREAD_FUNNELED
         : strcmp(name, "serialized") == 0 ? MPI_THREAD_SERIALIZED
                                           : MPI_THREAD_MULTIPLE;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int level = 0;
  MPI_Init_thread(&argc, &argv, level_of(argv[1]), &level);
  struct Sum own = {0};
  if (strcmp(argv[1], "finalized") == 0) {
    MPI_Finalize();
    const ddl_status status = ddl_init(NULL, &own.context);
    printf("init: %s: %s\n", ddl_status_name(status), ddl_last_error());
    return status == DDL_OK ? 1 : 0;
  }
  const int before = mpi_sum();
  if (ddl_init(NULL, &own.context) != DDL_OK) {
    printf("init: %s\n", ddl_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const int rank = ddl_rank(own.context);
  sum(&own);
  const int between = mpi_sum();
  printf("rank %d of %d over %s: %d ranks by mpi, %d wrong sums, threads %d, then %d ranks\n", rank, before,
         ddl_mpi_library(), before, own.wrong, ddl_has_feature("mpi-threads"), between);
  int bad = own.wrong;
  pthread_t thread;
  pthread_create(&thread, NULL, sum, &own);
  pthread_join(thread, NULL);
  printf("rank %d, another thread: %s %s\n", rank, ddl_status_name(own.status), own.error);
  bad += ddl_finalize(own.context) != DDL_OK;
  printf("rank %d, at the end: %d ranks by mpi, enabled %d\n", rank, mpi_sum(),
         ddl_has_feature("mpi-enabled"));
  MPI_Finalize();
  return bad != 0;
}
