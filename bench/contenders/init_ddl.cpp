// ddl_init() and ddl_finalize(), and in between, with the argument "allreduce", the sum of one number over all ranks.
// Compiled with DDL_BENCH_WITH_NAMED_TENSORS it also does a few steps of named tensors, so that their engine exists.
#include <cstdio>
#include <string_view>

#include "bench/idle_rank.h"
#include "ddl/ddl.h"

namespace {

bool sum_is_right(ddl_context* context) {
  float sum = 1;
  if (ddl_allreduce(context, &sum, &sum, 1, DDL_FLOAT32, DDL_SUM, nullptr) != DDL_OK) {
    std::fprintf(stderr, "%s\n", ddl_last_error());
    return false;
  }
  const int size = ddl_size(context);
  if (sum == static_cast<float>(size)) return true;
  std::fprintf(stderr, "the sum of ones over %d ranks is not %g\n", size, static_cast<double>(sum));
  return false;
}

#ifdef DDL_BENCH_WITH_NAMED_TENSORS
bool do_steps(ddl_context* context) {
  for (int step = 0; step < 10; ++step) {
    float first = 1, second = 1;
    ddl_handle* handles[2] = {};
    const ddl_status statuses[] = {
        ddl_allreduce_async(context, "first", &first, &first, 1, DDL_FLOAT32, DDL_SUM, nullptr, &handles[0]),
        ddl_allreduce_async(context, "second", &second, &second, 1, DDL_FLOAT32, DDL_SUM, nullptr,
                            &handles[1])};
    if (statuses[0] != DDL_OK || statuses[1] != DDL_OK || ddl_wait_all(handles, 2) != DDL_OK) {
      std::fprintf(stderr, "%s\n", ddl_last_error());
      return false;
    }
  }
  return true;
}
#else
bool do_steps(ddl_context*) { return true; }
#endif

}  // namespace

int main(int argc, char** argv) {
  ddl_context* context = nullptr;
  if (ddl_init(nullptr, &context) != DDL_OK) {
    std::fprintf(stderr, "%s\n", ddl_last_error());
    return 1;
  }
  if (ddl_size(context) < 2) {
    std::fprintf(stderr, "libddl sees a world of one\n");
    return 1;
  }
  if (argc > 1 && std::string_view(argv[1]) == "allreduce")
    return sum_is_right(context) && ddl_finalize(context) == DDL_OK ? 0 : 1;
  if (!do_steps(context)) return 1;
  const bool hold_succeeded = ddl::bench::hold_if_asked(argc, argv);
  return ddl_finalize(context) == DDL_OK && hold_succeeded ? 0 : 1;
}
