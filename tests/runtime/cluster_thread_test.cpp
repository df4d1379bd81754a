// Jobs on several hosts with ranks as threads: hosts that the test makes up, connected by TCP over loopback.
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

TEST_CASE("with many hosts, connections to all are made when a collective needs them") {
  ThreadJob job = job_on(hosts_of_sizes(std::vector<int>(18, 1)));
  job.run([&](ddl_context*& context) {
    const std::int32_t rank = ddl_rank(context), ranks = ddl_size(context);
    std::int32_t sum = rank;
    expect_ok(ddl_allreduce(context, &sum, &sum, 1, DDL_INT32, DDL_SUM, nullptr), "allreduce");
    expect(sum == ranks * (ranks - 1) / 2, "wrong sum");
    // Twice: with the connections being made, and with them there.
    for (int round = 0; round < 2; ++round) {
      std::vector<std::int32_t> send, recv(static_cast<std::size_t>(ranks));
      for (int to = 0; to < ranks; ++to) send.push_back(rank * 100 + to);
      expect_ok(ddl_alltoall(context, send.data(), recv.data(), 1, DDL_INT32, nullptr), "alltoall");
      for (int from = 0; from < ranks; ++from) {
        expect(recv[static_cast<std::size_t>(from)] == from * 100 + rank, "wrong element");
      }
    }
    // A process set has connections of its own. A few ranks: all descriptors are this one process's.
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
