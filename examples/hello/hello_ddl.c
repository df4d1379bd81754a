/* The smallest ddl program: every rank adds 1, and every rank learns how many they are. */
#include <inttypes.h>
#include <stdio.h>

#include <ddl/ddl.h>

int main(void) {
  ddl_context* context = NULL;
  int64_t ranks = 1;
  if (ddl_init(NULL, &context) != DDL_OK ||
      ddl_allreduce(context, &ranks, &ranks, 1, DDL_INT64, DDL_SUM, NULL) != DDL_OK) {
    fprintf(stderr, "hello_ddl: %s\n", ddl_last_error());
    return 1;
  }
  printf("hello from rank %d of %d; together we count %" PRId64 "\n", ddl_rank(context), ddl_size(context),
         ranks);
  return ddl_finalize(context) == DDL_OK ? 0 : 1;
}
