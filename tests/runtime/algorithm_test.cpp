// The choice of algorithms as a table, and that the choice never shows in the bits.
#include "runtime/src/collective/algorithm.h"

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/call_agreement.h"
#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::runtime;
using ddl::conformance::expect;
using ddl::conformance::expect_ok;
using ddl::runtime::test::hosts_of_sizes;
using ddl::runtime::test::job_on;
using ddl::runtime::test::ThreadJob;

namespace {

/// Elements of a call that takes several chunks with each slot size used here; under a sanitizer each chunk takes
/// long.
#ifdef DDL_TEST_SANITIZED
constexpr std::uint64_t kMany = 1300;
#else
constexpr std::uint64_t kMany = 4099;
#endif

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
  CHECK(on_hosts(2 * 192 * 1024 - 1, 2, 2) == Algorithm::kTree);
  CHECK(on_hosts(2 * 192 * 1024, 2, 2) == Algorithm::kUnits);
  CHECK(on_hosts(2 * 65536 - 1, 3, 2) == Algorithm::kTree);
  CHECK(on_hosts(2 * 65536, 3, 2) == Algorithm::kUnits);
  CHECK(on_hosts(2 * 65536, 16, 2) == Algorithm::kUnits);
  CHECK(on_hosts(2 * 65536 - 1, 17, 2) == Algorithm::kTree);
  CHECK(on_hosts(2 * 65536, 17, 2) == Algorithm::kHalving);
  CHECK(choose({CallKind::kBroadcast, 1, 1, 2}) == Algorithm::kAuto);
}

TEST_CASE("a user's choice holds for the number of hosts that it is for") {
  const auto chosen = overrides("allreduce=slices, reduce=tree");
  CHECK(chosen.of(CallKind::kAllreduce) == Algorithm::kSlices);
  CHECK(chosen.of(CallKind::kReduce) == Algorithm::kTree);
  CHECK(chosen.of(CallKind::kScan) == Algorithm::kAuto);
  Call call = make_call(CallKind::kAllreduce, 1, DDL_FLOAT32);
  const auto usual = call.fingerprint();
  call.algorithm = Algorithm::kSlices;
  CHECK(call.fingerprint() != usual);
  CHECK(call.signature() == "allreduce(sum, by slices, float32, 1 element)");
  CHECK(algorithm_of(call, {CallKind::kAllreduce, 4, 1, 2}) == Algorithm::kSlices);
  CHECK(algorithm_of(call, {CallKind::kAllreduce, 4, 2, 2}) == Algorithm::kTree);
}

TEST_CASE("an invalid choice is refused with a list of the valid ones") {
  for (const char* text : {"slices", "allreduce=", "allreduce=fast", "broadcast=tree",
                           "allreduce=slices=tree", "reduce=ring", ","}) {
    CAPTURE(text);
    const auto parsed = AlgorithmOverrides::parse(text);
    REQUIRE_FALSE(parsed.has_value());
    CHECK_THAT(parsed.error().message(), Catch::Matchers::Contains("whole or slices"));
    CHECK_THAT(parsed.error().message(), Catch::Matchers::Contains("tree, units or halving"));
  }
}

TEST_CASE("the table is printed one rule per line") {
  const std::string text = explain_choices();
  CHECK_THAT(text, Catch::Matchers::StartsWith("allreduce, one host: whole\n"));
  CHECK_THAT(text,
             Catch::Matchers::Contains("allreduce, several hosts, up to 16, from 64 KiB a lane: units\n"));
  CHECK_THAT(text, Catch::Matchers::Contains("with a CPU each: the ranks synchronize in groups\n"));
  CHECK_THAT(text, Catch::Matchers::Contains(
                       "one host, up to 8192 bytes that a rank stages, the same as one of the last eight "));
  CHECK_THAT(text,
             Catch::Matchers::Contains("several hosts, up to 32 KiB in all, an alltoall for each host"));
  // What a program gets has those for GPUs, too.
  CHECK_THAT(
      ddl_algorithm_table(),
      Catch::Matchers::StartsWith(text) &&
          Catch::Matchers::Contains("up to 64 ranks that share one GPU: ipc, but for scans and transfers\n"));
}

TEST_CASE("every algorithm gives the same bits on one host") {
  ThreadJob job;
  job.ranks = GENERATE(2, 3, 5);
  job.slot_bytes = GENERATE(64, 4096);
  job.algorithms = overrides(GENERATE("allreduce=whole,reduce=whole", "allreduce=slices,reduce=slices"));
  CAPTURE(job.ranks, job.slot_bytes);
  job.run([](ddl_context*& context) {
    ddl::conformance::check_allreduce(context, {0, 1, 7, 600, kMany});
    ddl::conformance::check_other_reductions(context, {1, 600, kMany});
  });
}

TEST_CASE("every algorithm that the table knows gives the same bits on several hosts") {
  // The first three have chunks of few elements, so that some of the parts into which they are cut are empty.
  struct Layout {
    std::vector<int> hosts;
    std::size_t slot_bytes;
  };
  const auto layout =
      GENERATE(Layout{{1, 1}, 64}, Layout{{2, 1, 2}, 64}, Layout{{1, 1, 1, 1, 1}, 64}, Layout{{1, 1}, 4096},
               Layout{{1, 1, 1}, 4096}, Layout{{2, 2, 2, 2}, 4096}, Layout{{2, 1, 1, 2, 1}, 4096},
               Layout{std::vector(6, 1), 4096}, Layout{std::vector(7, 1), 1024},
               Layout{std::vector(8, 1), 4096}, Layout{std::vector(9, 1), 1024});
  const char* const algorithms = GENERATE("allreduce=tree,reduce=tree", "allreduce=units,reduce=units",
                                          "allreduce=halving,reduce=halving");
  CAPTURE(layout.hosts, layout.slot_bytes, algorithms);
  ThreadJob job = job_on(hosts_of_sizes(layout.hosts));
  job.slot_bytes = layout.slot_bytes;
  job.algorithms = overrides(algorithms);
  job.run([](ddl_context*& context) {
    ddl::conformance::check_allreduce(context, {0, 1, 7, 600, kMany});
    ddl::conformance::check_other_reductions(context, {1, 600});
  });
}

TEST_CASE("on many hosts a large value goes along the existing connections, with the same bits") {
  ThreadJob job = job_on(hosts_of_sizes(std::vector<int>(GENERATE(17, 20), 1)));
  job.slot_bytes = 4096;
  job.algorithms = overrides("allreduce=halving,reduce=halving");
  CAPTURE(job.ranks);
  job.run([](ddl_context*& context) {
    ddl::conformance::check_allreduce(context, {7, 600});
    std::vector<double> sums(9000, 0.1 * ddl_rank(context)), everywhere(sums.size());
    const std::int32_t root = ddl_size(context) - 1;
    expect_ok(
        ddl_allreduce(context, sums.data(), everywhere.data(), sums.size(), DDL_FLOAT64, DDL_SUM, nullptr),
        "allreduce");
    expect_ok(ddl_reduce(context, sums.data(), sums.data(), sums.size(), DDL_FLOAT64, DDL_SUM, root, nullptr),
              "reduce");
    if (ddl_rank(context) == root) expect(sums == everywhere, "reduce and allreduce differ");
  });
}

TEST_CASE("around the ring all ranks get the same bits, in an order of its own") {
  const int hosts = GENERATE(range(2, 10));
  ThreadJob job = job_on(hosts_of_sizes(std::vector<int>(static_cast<std::size_t>(hosts), 1)));
  job.slot_bytes = 1024;
  job.algorithms = overrides("allreduce=ring");
  const auto area = SlotAreas::of(job.slot_bytes, job.ranks, 1).area_bytes;
  // Sums whose bits depend on the order of additions.
  const auto value = [](int rank, std::uint64_t e) {
    return 1.0F / static_cast<float>(3 + 7 * static_cast<std::uint64_t>(rank) + 11 * e);
  };
  job.run([&](ddl_context*& context) {
    for (const std::uint64_t count : {0, 1, hosts - 1, hosts, 255, 256, 1031, 4099}) {
      std::vector<float> sums(count), wanted(count);
      const Chunking chunking{count, area / sizeof(float), 1};
      for (std::uint64_t chunk = 0; chunk < chunking.chunks(); ++chunk) {
        const ElementRange range = chunking.chunk(chunk);
        for (int unit = 0; unit < hosts; ++unit) {
          const ElementRange part = even_part(range.count, unit, hosts);
          for (std::uint64_t i = 0; i < part.count; ++i) {
            const std::uint64_t e = range.first + part.first + i;
            wanted[e] = value((unit + 1) % hosts, e);
            for (int host = unit + 2; host <= unit + hosts; ++host) wanted[e] += value(host % hosts, e);
          }
        }
      }
      for (std::uint64_t e = 0; e < count; ++e) sums[e] = value(ddl_rank(context), e);
      expect_ok(ddl_allreduce(context, sums.data(), sums.data(), count, DDL_FLOAT32, DDL_SUM, nullptr),
                "allreduce");
      expect(sums == wanted, "another order of " + std::to_string(count) + " elements");
    }
  });
}

TEST_CASE("the ring works with several lanes, several ranks of a host, and hosts that were not connected") {
  ThreadJob job = job_on(hosts_of_sizes(
      GENERATE(std::vector{2, 2, 2}, std::vector{3, 1, 2}, std::vector{2, 2}, std::vector<int>(17, 1))));
  job.slot_bytes = GENERATE(64, 4096);
  job.algorithms = overrides("allreduce=ring");
  CAPTURE(job.hosts.size(), job.slot_bytes);
  job.run([](ddl_context*& context) {
    const auto ranks = static_cast<std::int64_t>(ddl_size(context));
    for (const std::uint64_t count : {0, 1, 5, 600, 4099}) {
      std::vector<std::int64_t> sums(count);
      for (std::uint64_t e = 0; e < count; ++e)
        sums[e] = static_cast<std::int64_t>(e) * 100 + ddl_rank(context);
      expect_ok(ddl_allreduce(context, sums.data(), sums.data(), count, DDL_INT64, DDL_SUM, nullptr),
                "allreduce");
      for (std::uint64_t e = 0; e < count; ++e) {
        expect(sums[e] == static_cast<std::int64_t>(e) * 100 * ranks + ranks * (ranks - 1) / 2,
               "a wrong sum of element " + std::to_string(e));
      }
    }
  });
}
