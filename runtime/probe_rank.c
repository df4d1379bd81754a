/* probe-rank: one rank of a job that checks that libddl works here. Rank 0 prints the bootstrap, the backend, the
 * number of ranks and the sum of their ranks. The exit code is 0 if the sum is right. Started by ddlrun
 * --check-build. */
#include <stdio.h>

#include "ddl/ddl.h"

static int complain(const char* what) {
  fprintf(stderr, "%s: %s\n", what, ddl_last_error());
  return 1;
}

int main(void) {
  ddl_context* context = NULL;
  if (ddl_init(NULL, &context) != DDL_OK) return complain("ddl_init");
  const int size = ddl_size(context);
  int32_t sum = ddl_rank(context);
  if (ddl_allreduce(context, &sum, &sum, 1, DDL_INT32, DDL_SUM, NULL) != DDL_OK)
    return complain("ddl_allreduce");
  if (ddl_rank(context) == 0)
    printf("%s %s %d %d libddl %s%s%s\n", ddl_bootstrap_name(context), ddl_backend_name(context), size,
           (int)sum, ddl_version(), ddl_has_feature("mpi-enabled") ? " over " : "", ddl_mpi_library());
  if (ddl_finalize(context) != DDL_OK) return complain("ddl_finalize");
  return sum == size * (size - 1) / 2 ? 0 : 1;
}
