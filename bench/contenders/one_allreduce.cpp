// ddl_init(), one allreduce of one number, whose result is checked, and ddl_finalize().
#include <cstdio>

#include "ddl/ddl.h"

int main() {
  ddl_context* context = nullptr;
  if (ddl_init(nullptr, &context) != DDL_OK) {
    std::fprintf(stderr, "%s\n", ddl_last_error());
    return 1;
  }
  const int size = ddl_size(context);
  float sum = 1;
  if (ddl_allreduce(context, &sum, &sum, 1, DDL_FLOAT32, DDL_SUM, nullptr) != DDL_OK) {
    std::fprintf(stderr, "%s\n", ddl_last_error());
    return 1;
  }
  if (size < 2 || sum != static_cast<float>(size)) {
    std::fprintf(stderr, "the sum of ones over %d ranks is not %g\n", size, static_cast<double>(sum));
    return 1;
  }
  return ddl_finalize(context) == DDL_OK ? 0 : 1;
}
