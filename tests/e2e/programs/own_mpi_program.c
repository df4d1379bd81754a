/* own_mpi_program single|funneled|serialized|multiple|finalized: an MPI program whose MPI libddl uses.
 *   single ... multiple  initialises MPI at this thread level, sums with both in turn, and uses MPI after libddl was
 *                        finalized; a second thread calls libddl, which works or is refused. Then sums of named
 *                        tensors, of which a second thread submits and awaits some
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

/* Tensors that one thread submits and waits for. */
enum { kTensors = 4 };
struct Tensors {
  ddl_context* context;
  const char* prefix;
  int32_t priority;
  int32_t values[kTensors][kCount];
  ddl_handle* handles[kTensors];
  ddl_status status;
};

static void submit(struct Tensors* own) {
  const int rank = ddl_rank(own->context);
  ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
  options.priority = own->priority;
  own->status = DDL_OK;
  for (int tensor = 0; tensor < kTensors; ++tensor) {
    char name[32];
    snprintf(name, sizeof name, "%s %d", own->prefix, tensor);
    for (int i = 0; i < kCount; ++i) own->values[tensor][i] = rank + i;
    const ddl_status status =
        ddl_allreduce_async(own->context, name, own->values[tensor], own->values[tensor], kCount, DDL_INT32,
                            DDL_SUM, &options, &own->handles[tensor]);
    if (status != DDL_OK) own->status = status;
  }
}

static void* await(void* argument) {
  struct Tensors* own = argument;
  const ddl_status status = ddl_wait_all(own->handles, kTensors);
  if (own->status == DDL_OK) own->status = status;
  return NULL;
}

static int wrong_sums(const struct Tensors* own) {
  const int size = ddl_size(own->context);
  int wrong = 0;
  for (int tensor = 0; tensor < kTensors; ++tensor) {
    for (int i = 0; i < kCount; ++i) wrong += own->values[tensor][i] != size * (size - 1) / 2 + size * i;
  }
  return wrong;
}

/* The number of wrong sums and errors. The main thread waits for tensors that come last, so it executes all. */
static int named_sums(ddl_context* context) {
  static struct Tensors theirs = {.prefix = "another thread's"}, ours = {.prefix = "ours", .priority = -1};
  theirs.context = ours.context = context;
  int bad = 0;
  for (int step = 0; step < 5; ++step) {
    pthread_t thread;
    submit(&theirs);
    /* No thread is inside libddl, so below MPI_THREAD_MULTIPLE nobody else is in MPI. */
    const int between = mpi_sum();
    pthread_create(&thread, NULL, await, &theirs);
    submit(&ours);
    await(&ours);
    pthread_join(thread, NULL);
    bad += wrong_sums(&ours) + wrong_sums(&theirs) + (ours.status != DDL_OK) + (theirs.status != DDL_OK) +
           (between != ddl_size(context));
    if (bad != 0) break;
  }
  printf("rank %d, tensors: %s, %d wrong sums, of another thread: %s, %d wrong\n", ddl_rank(context),
         ddl_status_name(ours.status), wrong_sums(&ours), ddl_status_name(theirs.status),
         wrong_sums(&theirs));
  return bad;
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
  bad += named_sums(own.context);
  bad += ddl_finalize(own.context) != DDL_OK;
  printf("rank %d, at the end: %d ranks by mpi, enabled %d\n", rank, mpi_sum(),
         ddl_has_feature("mpi-enabled"));
  MPI_Finalize();
  return bad != 0;
}
