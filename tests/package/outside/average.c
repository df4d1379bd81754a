/* Averages each rank's number; prints "rank R of N by BOOTSTRAP: AVERAGE". */
#include <stdio.h>

#include <ddl/ddl.h>

int main(void) {
  ddl_context* context = NULL;
  if (ddl_init(NULL, &context) != DDL_OK) {
    fprintf(stderr, "%s\n", ddl_last_error());
    return 1;
  }
  double value = ddl_rank(context);
  if (ddl_allreduce(context, &value, &value, 1, DDL_FLOAT64, DDL_AVERAGE, NULL) != DDL_OK) {
    fprintf(stderr, "%s\n", ddl_last_error());
    return 1;
  }
  printf("rank %d of %d by %s: %g\n", (int)ddl_rank(context), (int)ddl_size(context),
         ddl_bootstrap_name(context), value);
  return ddl_finalize(context) == DDL_OK ? 0 : 1;
}
