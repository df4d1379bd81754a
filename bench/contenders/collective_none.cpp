// The cost of the measuring loop itself: two readings of the clock, and ranks that leave the barrier at slightly
// different moments. No contender can be faster.
#include "bench/contenders/measured_rank.h"

int main(int argc, char** argv) {
  using namespace ddl::bench;
  auto job = join_benchmark(argc, argv);
  if (!job) return fail_rank(job.error());
  const auto measured =
      measure(*job, Expect::kNothing, [](Collective, const Buffers& buffers) { return buffers.recv; });
  return measured ? 0 : fail_rank(measured.error());
}
