// Many random steps of named tensors, and the ordered collectives with the same data: the same bits.
#include "runtime/support/conformance.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::ThreadJob;

namespace {

/// On one host, on two where large tensors are cut, and on two of which one has ranks without a connection of their own.
ThreadJob job_of_soak(int layout) {
  ThreadJob job;
  job.ranks = 4;
  if (layout == 1) {
    job.hosts = {{0, 2}, {1, 3}};
    job.fusion_bytes = 10000;
  }
  if (layout == 2) job.hosts = {{0, 1, 2}, {3}};
  return job;
}

void soak(int steps, const ThreadJob& job, unsigned seed) {
  job.run([&](ddl_context*& context) { check_named_tensors(context, seed, steps); });
}

}  // namespace

TEST_CASE("named tensors in random steps have the bits of ordered collectives") {
  const int layout = GENERATE(0, 1, 2);
#ifdef DDL_TEST_SANITIZED
  constexpr int kSteps = 20;
#else
  constexpr int kSteps = 120;
#endif
  soak(kSteps, job_of_soak(layout), 1);
}

TEST_CASE("named tensors in ten thousand random steps have the bits of ordered collectives", "[.long]") {
  soak(10000, job_of_soak(GENERATE(0, 1, 2)), 2);
}
