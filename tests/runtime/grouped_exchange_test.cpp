// The exchange in groups, with ranks as threads: it has the properties of the flat one.
#include <atomic>
#include <future>
#include <thread>

#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::ExchangeConfig;
using ddl::runtime::test::ThreadJob;

namespace {

ExchangeConfig groups(int width = 0) { return {ExchangeConfig::Mode::kGroups, width}; }

std::string name_of(int rank) { return "rank " + std::to_string(rank) + " on host" + std::to_string(rank); }

}  // namespace

TEST_CASE("collectives conform if ranks synchronize in groups") {
  ThreadJob job;
  job.ranks = GENERATE(5, 9);
  job.exchange = groups();
  job.slot_bytes = 64;
  // Sequences wrap on the way.
  job.first_sequence = 0xFFFFFFF0u;
  CAPTURE(job.ranks);
  job.run([&](ddl_context*& context) { check_all(context, {0, 1, 3, 7, 33, 100}); });
}

TEST_CASE("collectives conform if many ranks synchronize in groups of any width") {
  ThreadJob job;
  job.ranks = 17;
  job.exchange = groups(GENERATE(0, 2, 17));
  job.slot_bytes = 1088;
  job.spin = std::chrono::microseconds(GENERATE(0, 20));
  job.first_sequence = 0x3FFFFFF0u;
  CAPTURE(job.exchange.width, job.spin.count());
  job.run([&](ddl_context*& context) {
    check_allreduce(context, {17, 600});
    check_broadcast(context, {1});
    check_allgather(context, {70});
  });
}

TEST_CASE("ranks of several hosts synchronize in groups on each") {
  ThreadJob job;
  job.ranks = 9;
  job.hosts = ddl::runtime::test::hosts_of_sizes({5, 4});
  job.exchange = groups(2);
  job.slot_bytes = 4096;
  job.run([&](ddl_context*& context) {
    check_allreduce(context, {1, 600, 4099});
    check_allgather(context, {1, 600});
    check_mismatches(context);
  });
}

TEST_CASE("a rank of any group that calls something else is named by all") {
  ThreadJob job;
  job.ranks = 5;
  job.exchange = groups(GENERATE(2, 3));
  job.run([&](ddl_context*& context) { check_mismatches(context, Extent::kFull); });
}

TEST_CASE("the bits of a sum are the same in groups") {
  std::vector<std::vector<float>> results;
  for (const ExchangeConfig exchange :
       {ExchangeConfig{ExchangeConfig::Mode::kFlat, 0}, groups(), groups(2), groups(5)}) {
    ThreadJob job;
    job.ranks = 5;
    job.exchange = exchange;
    job.slot_bytes = 192;
    results.emplace_back(1000);
    job.run([&](ddl_context*& context) {
      std::vector<float> values(1000);
      for (std::size_t e = 0; e < values.size(); ++e) {
        values[e] = 1.0f / static_cast<float>(1 + e + 7 * static_cast<std::size_t>(ddl_rank(context)));
      }
      expect_ok(
          ddl_allreduce(context, values.data(), values.data(), values.size(), DDL_FLOAT32, DDL_SUM, nullptr),
          "allreduce");
      if (ddl_rank(context) == 3) results.back() = values;
    });
  }
  for (const auto& result : results) CHECK(result == results.front());
}

TEST_CASE("a rank that does not arrive is named by every group") {
  ThreadJob job;
  job.ranks = 5;
  job.exchange = groups(2);
  job.spin = std::chrono::microseconds(GENERATE(0, 100));
  const int late = GENERATE(range(0, 5));
  CAPTURE(late, job.spin.count());
  std::promise<void> everybody_gave_up;
  std::shared_future<void> given_up(everybody_gave_up.get_future());
  std::atomic<int> waiting{4};
  job.run([&](ddl_context*& context) {
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.timeout_seconds = 0.2;
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    // A rank that gives up has seen all others.
    if (ddl_rank(context) == late) given_up.wait();
    const ddl_status status = ddl_barrier(context, &options);
    const std::string sentence = ddl_last_error();
    if (ddl_rank(context) != late && --waiting == 0) everybody_gave_up.set_value();
    expect_status(status, DDL_ERROR_TIMEOUT, "the barrier that somebody misses");
    expect_contains(sentence, "gave up after 0.2 s in barrier #2: not arrived: ");
    expect_contains(sentence, name_of(late) + " (pid ");
  });
}

TEST_CASE("a rank that leaves is named by every group that waits for it") {
  ThreadJob job;
  job.ranks = 5;
  job.exchange = groups(GENERATE(2, 3));
  const int leaver = GENERATE(range(0, 5));
  job.spin = std::chrono::microseconds(GENERATE(0, 20));
  // The departure comes before, during and after the wait.
  const int attempt = GENERATE(range(0, 5));
  CAPTURE(leaver, attempt);
  job.run([&](ddl_context*& context) {
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    if (ddl_rank(context) == leaver) {
      for (int i = 0; i < 7 * attempt; ++i) std::this_thread::yield();
      const ddl_status left = ddl_finalize(context);
      context = nullptr;
      return expect_ok(left, "finalize");
    }
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_PEER_LOST, "barrier without the leaver");
    expect_contains(ddl_last_error(), name_of(leaver) + " (pid ");
    expect_contains(ddl_last_error(), "left the job (finalize)");
    expect_contains(ddl_last_error(), "barrier #2");
  });
}

TEST_CASE("a departure from another group is noticed although the leader of that group does not arrive") {
  ThreadJob job;
  job.ranks = 6;
  job.exchange = groups(GENERATE(2, 3));
  // The last group's leader does not call, its follower leaves; all others must name the follower.
  const int leader = job.exchange.width == 2 ? 4 : 3, leaver = 5;
  std::promise<void> everybody_knows;
  std::shared_future<void> known(everybody_knows.get_future());
  std::atomic<int> waiting{4};
  job.run([&](ddl_context*& context) {
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    const int rank = ddl_rank(context);
    if (rank == leaver) {
      const ddl_status left = ddl_finalize(context);
      context = nullptr;
      return expect_ok(left, "finalize");
    }
    if (rank == leader) return known.wait();
    const ddl_status status = ddl_barrier(context, nullptr);
    const std::string sentence = ddl_last_error();
    if (--waiting == 0) everybody_knows.set_value();
    expect_status(status, DDL_ERROR_PEER_LOST, "barrier without the leaver");
    expect_contains(sentence, name_of(leaver) + " (pid ");
  });
}

TEST_CASE("any rank of a group may leave when no other rank needs it") {
  ThreadJob job;
  job.ranks = 9;
  job.exchange = groups();
  job.run([&](ddl_context*& context) {
    std::vector<double> values(20000, 1.0);
    expect_ok(
        ddl_allreduce(context, values.data(), values.data(), values.size(), DDL_FLOAT64, DDL_SUM, nullptr),
        "");
    const ddl_status left = ddl_finalize(context);
    context = nullptr;
    expect_ok(left, "finalize");
    expect(values.front() == 9.0 && values.back() == 9.0, "the last sum is wrong");
  });
}
