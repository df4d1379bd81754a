// Send and recv with ranks as threads: waiting, leaving, aborts, and several sets at once. The conformance suite
// checks the data.
#include <atomic>
#include <future>
#include <thread>

#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::Hosts;
using ddl::runtime::test::ThreadJob;

namespace {

ThreadJob small_job_on(const Hosts& hosts) {
  ThreadJob job = ddl::runtime::test::job_on(hosts);
  job.slot_bytes = 1024;
  return job;
}

/// Two ranks on one host, and on two, of which the second has more ranks than lanes.
const Hosts kTransferLayouts[] = {{{0, 1}}, {{0}, {1}}, {{0}, {1, 2}}, {{0, 1, 2}, {3}}};

ddl_status exchange(ddl_context* context, bool sends, int other, std::int32_t& value, double seconds = 0.0) {
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.timeout_seconds = seconds;
  return sends ? ddl_send(context, &value, 1, DDL_INT32, other, &options)
               : ddl_recv(context, &value, 1, DDL_INT32, other, &options);
}

}  // namespace

TEST_CASE("transfers conform, on one host and on several") {
  const Hosts hosts = GENERATE(Hosts{{0}}, Hosts{{0, 1}}, Hosts{{0, 1, 2, 3, 4}}, Hosts{{0}, {1}},
                               Hosts{{0, 2, 4}, {1, 3}}, Hosts{{0}, {1, 2, 3}, {4}});
  ThreadJob job = small_job_on(hosts);
  job.spin = std::chrono::microseconds(GENERATE(0, 50));
  job.run([](ddl_context*& context) { check_transfers(context, {0, 1, 3, 255, 256, 257, 70'000}); });
}

TEST_CASE("a rank that leaves without having sent is an error for the rank that waits for it") {
  const std::size_t layout = GENERATE(range(std::size_t{0}, std::size(kTransferLayouts)));
  ThreadJob job = small_job_on(kTransferLayouts[layout]);
  // The first and the last rank; either may leave, before or after the two have connected.
  const int last = job.ranks - 1;
  const int leaver = GENERATE(0, 1) == 0 ? 0 : last;
  const int waiter = leaver == 0 ? last : 0;
  const bool have_met = GENERATE(false, true);
  const bool sends = GENERATE(false, true);
  const int attempt = GENERATE(0, 10);
  CAPTURE(layout, leaver, have_met, sends, attempt);
  job.run([&](ddl_context*& context) {
    const int own = ddl_rank(context);
    std::int32_t value = 7;
    if (have_met && (own == leaver || own == waiter)) {
      expect_ok(exchange(context, own == leaver, own == leaver ? waiter : leaver, value),
                "the first transfer");
    }
    if (own == leaver) {
      // The departure comes before, at and after the beginning of the wait.
      for (int i = 0; i < attempt; ++i) std::this_thread::yield();
      const ddl_status left = ddl_finalize(context);
      context = nullptr;
      return expect_ok(left, "finalize");
    }
    if (own != waiter) return;
    expect_status(exchange(context, sends, leaver, value), DDL_ERROR_PEER_LOST,
                  "the transfer without the leaver");
    expect_contains(ddl_last_error(),
                    "rank " + std::to_string(leaver) + " on host" + std::to_string(leaver) + " (pid ");
    expect_contains(ddl_last_error(), "left the job (finalize)");
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_ABORTED, "the next call");
  });
}

TEST_CASE("a rank that does not arrive at a transfer is named") {
  const std::size_t layout = GENERATE(range(std::size_t{0}, std::size(kTransferLayouts)));
  ThreadJob job = small_job_on(kTransferLayouts[layout]);
  const int last = job.ranks - 1;
  const int absent = GENERATE(0, 1) == 0 ? 0 : last;
  const int waiter = absent == 0 ? last : 0;
  const bool have_met = GENERATE(false, true);
  CAPTURE(layout, absent, have_met);
  std::promise<void> gave_up;
  std::shared_future<void> given_up(gave_up.get_future());
  job.run([&](ddl_context*& context) {
    const int own = ddl_rank(context);
    std::int32_t value = 7;
    if (have_met && (own == absent || own == waiter)) {
      expect_ok(exchange(context, own == absent, own == absent ? waiter : absent, value),
                "the first transfer");
    }
    if (own != waiter) {
      given_up.wait();
      // The job has been aborted, so no rank waits for the one that gave up. The missed rank may find on its
      // connection all data that it needs for this call, and learn of the abort only then.
      ddl_status status =
          own == absent ? exchange(context, true, waiter, value) : ddl_barrier(context, nullptr);
      if (own == absent && status == DDL_OK) status = exchange(context, true, waiter, value);
      return expect_status(status, DDL_ERROR_TIMEOUT, "a call after somebody gave up");
    }
    const ddl_status status = exchange(context, false, absent, value, 0.05);
    const std::string sentence = ddl_last_error();
    gave_up.set_value();
    expect_status(status, DDL_ERROR_TIMEOUT, "the transfer that somebody misses");
    expect_contains(sentence, "gave up after 0.05 s in transfer");
    expect_contains(sentence, "not arrived: rank " + std::to_string(absent) + " on host" +
                                  std::to_string(absent) + " (pid ");
  });
}

TEST_CASE("a rank that waits in a transfer is notified of an abort elsewhere") {
  const std::size_t layout = GENERATE(range(std::size_t{0}, std::size(kTransferLayouts)));
  ThreadJob job = small_job_on(kTransferLayouts[layout]);
  const int last = job.ranks - 1;
  const int waiter = GENERATE(0, 1) == 0 ? 0 : last;
  const int other = waiter == 0 ? last : 0;
  const bool have_met = GENERATE(false, true);
  CAPTURE(layout, waiter, have_met);
  std::promise<void> heard;
  std::shared_future<void> has_heard(heard.get_future());
  job.run([&](ddl_context*& context) {
    const int own = ddl_rank(context);
    std::int32_t value = 7;
    if (have_met && (own == other || own == waiter)) {
      expect_ok(exchange(context, own == other, own == other ? waiter : other, value), "the first transfer");
    }
    if (own == waiter) {
      const ddl_status status = exchange(context, false, other, value);
      const std::string sentence = ddl_last_error();
      heard.set_value();
      expect_status(status, DDL_ERROR_TIMEOUT, "the transfer in an aborted job");
      return expect_contains(sentence, "gave up after 0.05 s in barrier");
    }
    if (own == other) {
      // Its collective misses the waiting rank.
      ddl_call_options options = DDL_CALL_OPTIONS_INIT;
      options.timeout_seconds = 0.05;
      expect_status(ddl_barrier(context, &options), DDL_ERROR_TIMEOUT, "the barrier");
    }
    has_heard.wait();
  });
}

TEST_CASE("transfers of different process sets go on at the same time") {
  const std::size_t layout = GENERATE(range(std::size_t{0}, std::size(kTransferLayouts)));
  CAPTURE(layout);
  const ThreadJob job = small_job_on(kTransferLayouts[layout]);
  constexpr int kRounds = 50;
  job.run([&](ddl_context*& context) {
    const int own = ddl_rank(context), size = ddl_size(context);
    std::vector<std::uint64_t> sets(3);
    for (std::uint64_t& set : sets) expect_ok(ddl_process_set_split(context, DDL_WORLD, 0, 0, &set), "split");
    std::vector<std::string> failures(sets.size());
    const auto talk = [&](std::size_t index) {
      ddl_call_options options = DDL_CALL_OPTIONS_INIT;
      options.process_set = sets[index];
      for (int round = 0; round < kRounds; ++round) {
        // Every set sends in another direction.
        const bool sends = (own == 0) == (index != 1);
        std::int64_t value = sends ? round * 10 + static_cast<int>(index) : -1;
        const int other = own == 0 ? size - 1 : 0;
        const ddl_status status = sends ? ddl_send(context, &value, 1, DDL_INT64, other, &options)
                                        : ddl_recv(context, &value, 1, DDL_INT64, other, &options);
        if (status != DDL_OK) failures[index] = ddl_last_error();
        if (value != round * 10 + static_cast<int>(index)) failures[index] = "another set's message";
      }
    };
    if (own == 0 || own == size - 1) {
      std::vector<std::thread> threads;
      for (std::size_t index = 0; index < sets.size(); ++index) threads.emplace_back(talk, index);
      for (std::thread& thread : threads) thread.join();
    }
    for (const std::string& failure : failures) expect(failure.empty(), failure);
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    for (const std::uint64_t set : sets) expect_ok(ddl_process_set_free(context, set), "free");
  });
}

TEST_CASE("a rank of another host may be early, with many others, and is not forgotten") {
  // All send to one, which receives from them in the order of their ranks, whichever connects first.
  Hosts hosts;
  const int receiver = GENERATE(0, 5, 11);
  for (int rank = 0; rank < 12; ++rank) hosts.push_back({rank});
  const ThreadJob job = small_job_on(hosts);
  job.run([&](ddl_context*& context) {
    const int own = ddl_rank(context);
    std::int32_t value = own;
    if (own != receiver) return expect_ok(exchange(context, true, receiver, value), "send");
    for (int from = job.ranks - 1; from >= 0; --from) {
      if (from == receiver) continue;
      expect_ok(exchange(context, false, from, value), "recv");
      expect(value == from, "another rank's message");
    }
  });
}

TEST_CASE("memory of the shared heap is sent from where it lies") {
  ThreadJob job = small_job_on({{0, 1}});
  job.run([&](ddl_context*& context) {
    constexpr std::uint64_t kCount = 100'000;
    void* memory = nullptr;
    expect_ok(ddl_alloc(context, kCount * sizeof(std::int32_t), &memory), "alloc");
    auto* const values = static_cast<std::int32_t*>(memory);
    const bool sends = ddl_rank(context) == 0;
    for (std::uint64_t i = 0; sends && i < kCount; ++i) values[i] = static_cast<std::int32_t>(i);
    expect_ok(sends ? ddl_send(context, values, kCount, DDL_INT32, 1, nullptr)
                    : ddl_recv(context, values, kCount, DDL_INT32, 0, nullptr),
              "transfer");
    for (std::uint64_t i = 0; i < kCount; ++i)
      expect(values[i] == static_cast<std::int32_t>(i), "another value");
    expect_ok(ddl_free(context, memory), "free");
  });
}
