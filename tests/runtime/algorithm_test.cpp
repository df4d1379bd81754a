// The choice of algorithms as a table, and that the choice never shows in the bits.
#include "runtime/src/collective/algorithm.h"

#include "runtime/support/conformance.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::runtime;
using ddl::runtime::test::hosts_of_sizes;
using ddl::runtime::test::ThreadJob;

namespace {

AlgorithmOverrides overrides(const char* text) {
  auto parsed = AlgorithmOverrides::parse(text);
  REQUIRE(parsed.has_value());
  return *parsed;
}

}  // namespace

TEST_CASE("the choice of an algorithm changes at the table's crossovers") {
  const auto on_one_host = [](std::uint64_t bytes, int ranks) {
    return choose({CallKind::kAllreduce, bytes, 1, ranks});
  };
  CHECK(on_one_host(0, 1) == Algorithm::kWhole);
  CHECK(on_one_host(std::uint64_t{1} << 30, 2) == Algorithm::kWhole);
  CHECK(on_one_host(3 * 4096 - 1, 3) == Algorithm::kWhole);
  CHECK(on_one_host(3 * 4096, 3) == Algorithm::kSlices);
  const auto on_hosts = [](std::uint64_t bytes, int hosts, int lanes) {
    return choose({CallKind::kReduce, bytes, hosts, lanes});
  };
  CHECK(on_hosts(2 * 16384 - 1, 2, 2) == Algorithm::kTree);
  CHECK(on_hosts(2 * 16384, 2, 2) == Algorithm::kUnits);
  CHECK(on_hosts(2 * 16384, 16, 2) == Algorithm::kUnits);
  CHECK(on_hosts(2 * 16384, 17, 2) == Algorithm::kTree);
  CHECK(choose({CallKind::kBroadcast, 1, 1, 2}) == Algorithm::kAuto);
}

TEST_CASE("a user's choice stands for the number of hosts that it is for") {
  const auto chosen = overrides("allreduce=slices, reduce=tree");
  CHECK(chosen.of(CallKind::kAllreduce) == Algorithm::kSlices);
  CHECK(chosen.of(CallKind::kReduce) == Algorithm::kTree);
  CHECK(chosen.of(CallKind::kScan) == Algorithm::kAuto);
  Call call = make_call(CallKind::kAllreduce, 1, DDL_FLOAT32);
  const auto usual = call.fingerprint();
  call.algorithm = static_cast<std::uint8_t>(Algorithm::kSlices);
  CHECK(call.fingerprint() != usual);
  CHECK(call.signature() == "allreduce(sum, by slices, float32, 1 element)");
  CHECK(algorithm_of(call, {CallKind::kAllreduce, 4, 1, 2}) == Algorithm::kSlices);
  CHECK(algorithm_of(call, {CallKind::kAllreduce, 4, 2, 2}) == Algorithm::kTree);
}

TEST_CASE("a choice that cannot be meant is refused with what could stand there") {
  for (const char* text :
       {"slices", "allreduce=", "allreduce=fast", "broadcast=tree", "allreduce=slices=tree", ","}) {
    CAPTURE(text);
    const auto parsed = AlgorithmOverrides::parse(text);
    REQUIRE_FALSE(parsed.has_value());
    CHECK_THAT(parsed.error().message(), Catch::Matchers::Contains("whole or slices"));
  }
}

TEST_CASE("the table is printed a rule a line") {
  const std::string text = explain_choices();
  CHECK_THAT(text, Catch::Matchers::StartsWith("allreduce, one host: whole\n"));
  CHECK_THAT(text,
             Catch::Matchers::Contains("allreduce, several hosts, up to 16, from 16 KiB a lane: units\n"));
  CHECK_THAT(text, Catch::Matchers::EndsWith("with a CPU each: the ranks meet in groups\n"));
}

TEST_CASE("every algorithm gives the same bits on one host") {
  ThreadJob job;
  job.ranks = GENERATE(2, 3, 5);
  job.slot_bytes = GENERATE(64, 4096);
  job.algorithms = overrides(GENERATE("allreduce=whole,reduce=whole", "allreduce=slices,reduce=slices"));
  CAPTURE(job.ranks, job.slot_bytes);
  job.run([](ddl_context*& context) {
    ddl::conformance::check_allreduce(context, {0, 1, 7, 600, 4099});
    ddl::conformance::check_other_reductions(context, {1, 600, 4099});
  });
}

TEST_CASE("every algorithm gives the same bits on several hosts") {
  ThreadJob job;
  job.hosts = hosts_of_sizes(GENERATE(std::vector{1, 1}, std::vector{2, 1, 2}, std::vector{1, 1, 1, 1, 1}));
  job.ranks = 0;
  for (const auto& ranks : job.hosts) job.ranks += static_cast<int>(ranks.size());
  job.slot_bytes = GENERATE(64, 4096);
  job.algorithms = overrides(GENERATE("allreduce=tree,reduce=tree", "allreduce=units,reduce=units"));
  CAPTURE(job.hosts.size(), job.slot_bytes);
  job.run([](ddl_context*& context) {
    ddl::conformance::check_allreduce(context, {0, 1, 7, 600, 4099});
    ddl::conformance::check_other_reductions(context, {1, 600});
  });
}
