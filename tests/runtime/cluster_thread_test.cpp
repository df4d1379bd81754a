// Jobs on several hosts with ranks as threads: hosts that the test makes up, connected by TCP over loopback.
#include "runtime/support/conformance.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::Hosts;
using ddl::runtime::test::hosts_of_sizes;
using ddl::runtime::test::ThreadJob;

namespace {

ThreadJob job_on(const Hosts& hosts) {
  ThreadJob job;
  job.hosts = hosts;
  job.ranks = 0;
  for (const auto& ranks : hosts) job.ranks += static_cast<int>(ranks.size());
  return job;
}

}  // namespace

TEST_CASE("collectives conform on several hosts of equal and unequal size") {
  const auto sizes = GENERATE(std::vector{1, 1}, std::vector{2, 1}, std::vector{2, 2}, std::vector{3, 2},
                              std::vector{1, 1, 1}, std::vector{2, 2, 2, 2}, std::vector{1, 3, 2, 1, 1});
  CAPTURE(sizes);
  ThreadJob job = job_on(hosts_of_sizes(sizes));
  // The smallest slots, so that few elements make many chunks; sequences wrap on the way.
  job.slot_bytes = 64;
  job.first_sequence = 0xFFFFFFF0u;
  const std::uint64_t area = std::max<std::uint64_t>(64, 64 * static_cast<std::uint64_t>(job.ranks));
  job.run([&](ddl_context*& context) { check_all(context, interesting_counts(area, job.ranks)); });
}
