// ddl_allreduce() of floats in place, in memory that libddl does not know.
#include <cstddef>

#include "bench/entrants/measuring_loop.h"
#include "ddl/ddl.h"

int main(int argc, char** argv) {
  using namespace ddl::bench;
  auto job = join_benchmark(argc, argv);
  if (!job) return fail_rank(job.error());
  ddl_context* context = nullptr;
  if (ddl_init(nullptr, &context) != DDL_OK) {
    return fail_rank(ddl::Error(ddl::ErrorCode::kSystem, ddl_last_error()));
  }
  ddl::Status status = check_world(*job, ddl_rank(context), ddl_size(context));
  if (status) {
    status = measure(*job, Expect::kSum, [context](float* data, std::size_t count) {
      return ddl_allreduce(context, data, data, count, DDL_FLOAT32, DDL_SUM, nullptr) == DDL_OK;
    });
  }
  // A failed rank leaves without finalize: the others may be waiting for it, and its death ends the job.
  if (!status) return fail_rank(status.error().during(ddl_last_error()));
  return ddl_finalize(context) == DDL_OK ? 0 : 1;
}
