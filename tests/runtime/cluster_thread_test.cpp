// Jobs on several hosts with ranks as threads: simulated hosts, connected by TCP over loopback.
#include <cstring>

#include "runtime/src/wire/slice_queue.h"
#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::hosts_of_sizes;
using ddl::runtime::test::job_on;
using ddl::runtime::test::ThreadJob;

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

TEST_CASE("moves conform around the sizes up to which they go with the comparison of the calls") {
  const auto sizes = GENERATE(std::vector{1, 1}, std::vector{2, 1}, std::vector{1, 3, 2, 1, 1});
  CAPTURE(sizes);
  ThreadJob job = job_on(hosts_of_sizes(sizes));
  job.slot_bytes = 256 << 10;
  job.run([&](ddl_context*& context) {
    const std::vector<std::uint64_t> counts{5, 400, 1025, 8193};
    check_broadcast(context, counts);
    check_allgather(context, counts);
    check_other_movement(context, counts);
  });
}

namespace {

/// Every rank's results of several collectives whose slices go in fragments, concatenated as bytes.
std::vector<std::vector<float>> results_with(ThreadJob job, int sockets, std::size_t count) {
  job.sockets_per_peer = sockets;
  std::vector<std::vector<float>> results(static_cast<std::size_t>(job.ranks));
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context), ranks = ddl_size(context);
    std::vector<float> own(count), all(count * static_cast<std::size_t>(ranks)), sum(count), from_root(count);
    for (std::size_t i = 0; i < count; ++i) {
      own[i] = 1.0f / static_cast<float>(1 + (i * 31 + static_cast<std::size_t>(rank) * 17) % 1009);
    }
    std::vector<float>& mine = results[static_cast<std::size_t>(rank)];
    const auto keep = [&](const std::vector<float>& values) {
      mine.insert(mine.end(), values.begin(), values.end());
    };
    for (int round = 0; round < 3; ++round) {
      expect_ok(ddl_allreduce(context, own.data(), sum.data(), count, DDL_FLOAT32, DDL_SUM, nullptr),
                "allreduce");
      keep(sum);
      expect_ok(ddl_allgather(context, own.data(), all.data(), count, DDL_FLOAT32, nullptr), "allgather");
      keep(all);
      // Small calls between large ones.
      expect_ok(ddl_allreduce(context, own.data(), sum.data(), 5, DDL_FLOAT32, DDL_SUM, nullptr),
                "allreduce");
      keep({sum.begin(), sum.begin() + 5});
      from_root = own;
      expect_ok(ddl_broadcast(context, from_root.data(), count, DDL_FLOAT32, ranks - 1, nullptr),
                "broadcast");
      keep(from_root);
      std::vector<float> swapped(all.size());
      expect_ok(ddl_alltoall(context, all.data(), swapped.data(), count, DDL_FLOAT32, nullptr), "alltoall");
      keep(swapped);
      expect_ok(ddl_barrier(context, nullptr), "barrier");
    }
  });
  return results;
}

}  // namespace

TEST_CASE("with any number of sockets the results have the same bits") {
  const auto sizes = GENERATE(std::vector{1, 1}, std::vector{2, 2}, std::vector{1, 1, 1});
  CAPTURE(sizes);
  ThreadJob job = job_on(hosts_of_sizes(sizes));
  // Slices of several fragments, also if a chunk is one unit for each host and lane.
  job.slot_bytes = 16 * ddl::runtime::kFragmentBytes;
  const std::size_t count = 3 * job.slot_bytes / sizeof(float) + 12345;
  const auto with_one = results_with(job, 1, count);
  for (const int sockets : {2, 4}) {
    CAPTURE(sockets);
    const auto with_several = results_with(job, sockets, count);
    REQUIRE(with_several.size() == with_one.size());
    for (std::size_t rank = 0; rank < with_one.size(); ++rank) {
      CAPTURE(rank);
      REQUIRE(with_several[rank].size() == with_one[rank].size());
      CHECK(std::memcmp(with_several[rank].data(), with_one[rank].data(),
                        with_one[rank].size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("collectives conform with several sockets between hosts") {
  ThreadJob job = job_on(hosts_of_sizes({2, 1, 1}));
  job.sockets_per_peer = GENERATE(2, 4);
  job.slot_bytes = 4 * ddl::runtime::kFragmentBytes;
  CAPTURE(job.sockets_per_peer);
  job.run([&](ddl_context*& context) {
    check_allreduce(context, {8192, 40'000});
    check_broadcast(context, {8192, 40'000});
    check_allgather(context, {8192, 40'000});
  });
}

TEST_CASE("with many hosts, connections to all are made when a collective needs them") {
  ThreadJob job = job_on(hosts_of_sizes(std::vector<int>(18, 1)));
  job.run([&](ddl_context*& context) {
    const std::int32_t rank = ddl_rank(context), ranks = ddl_size(context);
    std::int32_t sum = rank;
    expect_ok(ddl_allreduce(context, &sum, &sum, 1, DDL_INT32, DDL_SUM, nullptr), "allreduce");
    expect(sum == ranks * (ranks - 1) / 2, "wrong sum");
    // Twice: when the connections are made, and when they exist.
    for (int round = 0; round < 2; ++round) {
      std::vector<std::int32_t> send, recv(static_cast<std::size_t>(ranks));
      for (int to = 0; to < ranks; ++to) send.push_back(rank * 100 + to);
      expect_ok(ddl_alltoall(context, send.data(), recv.data(), 1, DDL_INT32, nullptr), "alltoall");
      for (int from = 0; from < ranks; ++from) {
        expect(recv[static_cast<std::size_t>(from)] == from * 100 + rank, "wrong element");
      }
    }
    // A process set has connections of its own. Few ranks, because one process has all descriptors.
    std::uint64_t set = 0;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, rank < 3 ? 0 : -1, -rank, &set), "split");
    if (rank >= 3) {
      expect(set == DDL_NO_PROCESS_SET, "in the set");
      return;
    }
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.process_set = set;
    std::vector<std::int32_t> all(3);
    expect_ok(ddl_allgather(context, &rank, all.data(), 1, DDL_INT32, &options), "allgather");
    expect(all.front() == 2 && all.back() == 0, "wrong order");
    std::vector<std::int32_t> job_ranks(all.size());
    expect_ok(ddl_process_set_ranks(context, set, job_ranks.data()), "ranks");
    expect(job_ranks == all, "wrong ranks");
  });
}
