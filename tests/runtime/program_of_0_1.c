/* A program as it was compiled with version 0.1: it finds every function of that version in libddl.so.0, and its
 * numbers of types and its option structs mean what they meant.
 * Says "rank R of N: version 0.1 still runs" and exits with 0, or says what does not and exits with 1. */
#include <stdio.h>
#include <string.h>

#include "runtime/ddl_0_1.h"

typedef void (*function)(void);
/* Every function that it could have been linked with: a missing one fails the build. */
static const function kFunctions[] = {
    (function)ddl_init,
    (function)ddl_finalize,
    (function)ddl_rank,
    (function)ddl_size,
    (function)ddl_local_rank,
    (function)ddl_local_size,
    (function)ddl_cross_rank,
    (function)ddl_cross_size,
    (function)ddl_bootstrap_name,
    (function)ddl_cpu_operations,
    (function)ddl_allreduce,
    (function)ddl_reduce,
    (function)ddl_reduce_scatter,
    (function)ddl_scan,
    (function)ddl_broadcast,
    (function)ddl_allgather,
    (function)ddl_allgatherv,
    (function)ddl_gather,
    (function)ddl_scatter,
    (function)ddl_alltoall,
    (function)ddl_alltoallv,
    (function)ddl_send,
    (function)ddl_recv,
    (function)ddl_alloc,
    (function)ddl_free,
    (function)ddl_barrier,
    (function)ddl_process_set_create,
    (function)ddl_process_set_split,
    (function)ddl_process_set_free,
    (function)ddl_process_set_rank,
    (function)ddl_process_set_size,
    (function)ddl_process_set_ranks,
    (function)ddl_mpi_built,
    (function)ddl_nccl_built,
    (function)ddl_cuda_built,
    (function)ddl_rocm_built,
    (function)ddl_mpi_enabled,
    (function)ddl_mpi_threads_supported,
    (function)ddl_mpi_library,
    (function)ddl_last_error,
    (function)ddl_status_name,
    (function)ddl_algorithm_table,
    (function)ddl_version,
};

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, ddl_last_error());
  return 1;
}

int main(void) {
  ddl_init_options init = DDL_INIT_OPTIONS_INIT;
  init.timeout_seconds = 60.0;
  ddl_context* context = NULL;
  if (ddl_init(&init, &context) != DDL_OK) return fail("init");
  const int rank = ddl_rank(context), size = ddl_size(context);
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.prescale = 2.0;

  /* One number of each width, and a bool. */
  int8_t small = 1;
  ddl_float16 half = {0x3C00}; /* 1 */
  float single = 1.0f;
  int64_t large = rank;
  uint8_t flag = rank == 0;
  if (ddl_allreduce(context, &small, &small, 1, DDL_INT8, DDL_SUM, NULL) != DDL_OK) return fail("int8");
  if (ddl_allreduce(context, &half, &half, 1, DDL_FLOAT16, DDL_MAX, NULL) != DDL_OK) return fail("float16");
  if (ddl_allreduce(context, &single, &single, 1, DDL_FLOAT32, DDL_SUM, &options) != DDL_OK)
    return fail("float32");
  if (ddl_allreduce(context, &large, &large, 1, DDL_INT64, DDL_MAX, NULL) != DDL_OK) return fail("int64");
  if (ddl_allreduce(context, &flag, &flag, 1, DDL_BOOL, DDL_LOGICAL_OR, NULL) != DDL_OK) return fail("bool");
  if (small != size || half.bits != 0x3C00 || single != 2.0f * (float)size || large != size - 1 || flag != 1)
    return fail("a result is wrong");

  /* The stand-ins for the GPUs' libraries are there. */
  if (ddl_nccl_built() != 1 || ddl_cuda_built() != 1 || ddl_rocm_built() != 1)
    return fail("what it says of GPUs");
  const int is_mpi = strcmp(ddl_cpu_operations(context), "mpi") == 0;
  if (ddl_mpi_enabled() != is_mpi || (is_mpi && !ddl_mpi_built()) || (!is_mpi && ddl_mpi_threads_supported()))
    return fail("what it says of MPI");
  for (unsigned i = 0; i < sizeof kFunctions / sizeof *kFunctions; ++i) {
    if (kFunctions[i] == 0) return fail("a function is missing");
  }
  if (ddl_finalize(context) != DDL_OK) return fail("finalize");
  printf("rank %d of %d: version 0.1 still runs\n", rank, size);
  return 0;
}
