/* What libddl was built with, what it finds here, what this job has of it, and a greeting of every rank: the questions
 * that people put to Horovod before their first job (rocm_built, cuda_built, mpi_enabled, ...).
 *
 *   ddlrun -np 2 check_ddl
 *   ddlrun -np 2 --cpu-operations mpi check_ddl */
#include <stdio.h>

#include <ddl/ddl.h>

static void say(int32_t yes, const char* if_yes, const char* if_no) {
  printf("--%s\n", yes ? if_yes : if_no);
}

static void say_what_is_built(const ddl_context* context) {
  /* libddl is built for GPUs always, and loads the vendors' libraries where they are. */
  say(ddl_has_feature("rocm"), "ROCm's HIP can be loaded here.", "ROCm's HIP can NOT be loaded here.");
  say(ddl_has_feature("cuda"), "CUDA's driver can be loaded here.", "CUDA's driver can NOT be loaded here.");
  say(ddl_has_feature("mpi-enabled"), "MPI support is enabled.",
      "MPI support is not enabled (--cpu-operations mpi enables it).");
  say(ddl_has_feature("mpi"), "libddl is compiled with MPI support.",
      "libddl is NOT compiled with MPI support.");
  say(ddl_has_feature("nccl"), "NCCL or RCCL can be loaded here.",
      "Neither NCCL nor RCCL can be loaded here.");
  if (ddl_has_feature("mpi-enabled")) {
    say(ddl_has_feature("mpi-threads"),
        "MPI multi-threading is supported: you may use MPI beside libddl, from any thread.",
        "MPI multi-threading is NOT supported: leave MPI to one thread at a time.");
    printf("--The MPI is %s.\n", ddl_mpi_library());
  }
  printf("--Collectives are run by %s.\n", ddl_backend_name(context));
  fflush(stdout);
}

int main(void) {
  ddl_context* context = NULL;
  if (ddl_init(NULL, &context) != DDL_OK) {
    fprintf(stderr, "check_ddl: %s\n", ddl_last_error());
    return 1;
  }
  if (ddl_rank(context) == 0) say_what_is_built(context);
  printf("Hello, rank = %d, local_rank = %d, size = %d, local_size = %d\n", ddl_rank(context),
         ddl_local_rank(context), ddl_size(context), ddl_local_size(context));
  return ddl_finalize(context) == DDL_OK ? 0 : 1;
}
