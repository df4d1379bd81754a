// Properties of a context other than results, with ranks as threads: barriers, busy, timeouts, departures.
#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::Hosts;
using ddl::runtime::test::job_on;
using ddl::runtime::test::ThreadJob;

TEST_CASE("no rank leaves a barrier before all have entered") {
  using ddl::runtime::ExchangeConfig;
  ThreadJob job;
  job.ranks = GENERATE(2, 5, 9);
  job.exchange = GENERATE(ExchangeConfig{ExchangeConfig::Mode::kFlat, 0},
                          ExchangeConfig{ExchangeConfig::Mode::kGroups, 0},
                          ExchangeConfig{ExchangeConfig::Mode::kGroups, 2});
  std::atomic<int> arrivals{0};
  job.run([&](ddl_context*& context) {
    for (int round = 1; round <= 200; ++round) {
      ++arrivals;
      expect_ok(ddl_barrier(context, nullptr), "barrier");
      expect(arrivals >= round * job.ranks, "a rank left the barrier too early");
      expect_ok(ddl_barrier(context, nullptr), "barrier");
    }
  });
}

TEST_CASE("the bits of a sum do not depend on slots, buffers or timing") {
  constexpr std::uint64_t kCount = 3000;
  std::vector<std::vector<float>> results;
  for (const std::size_t slot_bytes :
       {std::size_t{64}, std::size_t{192}, std::size_t{4096}, std::size_t{32768}}) {
    ThreadJob job;
    job.ranks = 5;
    job.slot_bytes = slot_bytes;
    results.emplace_back(kCount);
    job.run([&](ddl_context*& context) {
      std::vector<float> values(kCount);
      for (std::size_t e = 0; e < kCount; ++e) {
        values[e] = 1.0f / static_cast<float>(1 + e + 7 * static_cast<std::size_t>(ddl_rank(context)));
      }
      expect_ok(
          ddl_allreduce(context, values.data(), values.data(), kCount, DDL_FLOAT32, DDL_AVERAGE, nullptr),
          "");
      if (ddl_rank(context) == 3) results.back() = values;
    });
  }
  for (const auto& result : results) CHECK(result == results.front());
}

TEST_CASE("a second thread in a call of a context gets busy") {
  ThreadJob job;
  job.ranks = 2;
  std::promise<void> somebody_was_refused;
  job.run([&](ddl_context*& context) {
    if (ddl_rank(context) == 1) {
      somebody_was_refused.get_future().wait();
      expect_ok(ddl_barrier(context, nullptr), "barrier of rank 1");
      return;
    }
    // Two threads race for the context. The loser gets busy at once, while the winner waits in its call for rank 1.
    std::atomic<int> ok{0}, busy{0};
    std::string failure;
    const auto call = [&] {
      const ddl_status status = ddl_barrier(context, nullptr);
      if (status == DDL_OK) ++ok;
      if (status != DDL_ERROR_BUSY) return;
      ++busy;
      if (ddl_finalize(context) != DDL_ERROR_BUSY) failure = "finalize did not say busy";
      if (ddl_rank(context) != 0) failure = "the rank cannot be read meanwhile";
      somebody_was_refused.set_value();
    };
    std::thread other(call);
    call();
    other.join();
    expect(ok == 1 && busy == 1, "one call must succeed and one be refused");
    expect(failure.empty(), failure);
  });
}

TEST_CASE("a rank that does not arrive is named by all ranks, in the same message") {
  ThreadJob job;
  job.ranks = 3;
  // A spin that is longer than the deadline must not outlast it.
  job.spin = std::chrono::microseconds(GENERATE(0, 100, 30'000'000));
  std::promise<void> everybody_gave_up;
  std::shared_future<void> given_up(everybody_gave_up.get_future());
  std::atomic<int> waiting{2};
  job.run([&](ddl_context*& context) {
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.timeout_seconds = 0.05;
    float value = 1;
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    if (ddl_rank(context) == 2) given_up.wait();
    expect_status(ddl_allreduce(context, &value, &value, 1, DDL_FLOAT32, DDL_MAX, &options),
                  DDL_ERROR_TIMEOUT, "the call that somebody misses");
    const std::string sentence = ddl_last_error();
    if (ddl_rank(context) != 2 && --waiting == 0) everybody_gave_up.set_value();
    expect_contains(
        sentence,
        "gave up after 0.05 s in allreduce #2 (max, float32, 1 element): not arrived: rank 2 on host2 (pid ");
    expect(value == 1, "the buffer was written");
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_ABORTED, "the next call");
    expect_contains(ddl_last_error(), "aborted earlier: " + sentence);
  });
}

TEST_CASE("the context's timeout holds for calls that name none") {
  ThreadJob job;
  job.ranks = 2;
  job.timeout_seconds = 0.05;
  std::promise<void> gave_up;
  job.run([&](ddl_context*& context) {
    if (ddl_rank(context) == 1) return gave_up.get_future().wait();
    const ddl_status status = ddl_barrier(context, nullptr);
    gave_up.set_value();
    expect_status(status, DDL_ERROR_TIMEOUT, "barrier");
  });
}

TEST_CASE("a rank that leaves while others wait for it is an error, not a hang") {
  ThreadJob job;
  job.ranks = GENERATE(2, 4);
  job.spin = std::chrono::microseconds(GENERATE(0, 20));
  // The departure comes before, during and after the wait; the sleep begins after the yields.
  const int attempt = GENERATE(range(0, 25));
  CAPTURE(job.ranks, attempt);
  job.run([&](ddl_context*& context) {
    const int leaver = job.ranks - 1;
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    if (ddl_rank(context) == leaver) {
      for (int i = 0; i < attempt; ++i) std::this_thread::yield();
      const ddl_status left = ddl_finalize(context);
      context = nullptr;
      return expect_ok(left, "finalize");
    }
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_PEER_LOST, "barrier without the leaver");
    expect_contains(ddl_last_error(),
                    "rank " + std::to_string(leaver) + " on host" + std::to_string(leaver) + " (pid ");
    expect_contains(ddl_last_error(), "left the job (finalize)");
    expect_contains(ddl_last_error(), "barrier #2");
  });
}

TEST_CASE("a rank may leave when no other rank needs it") {
  ThreadJob job;
  job.ranks = 4;
  job.run([&](ddl_context*& context) {
    // Ranks that return from the last call first are gone before the others have read their slots.
    std::vector<double> values(20000, 1.0);
    expect_ok(
        ddl_allreduce(context, values.data(), values.data(), values.size(), DDL_FLOAT64, DDL_SUM, nullptr),
        "");
    const ddl_status left = ddl_finalize(context);
    context = nullptr;
    expect_ok(left, "finalize");
    expect(values.front() == 4.0 && values.back() == 4.0, "the last sum is wrong");
  });
}

TEST_CASE("a rank that aborts the job ends the calls of all ranks of all hosts and sets, with its own text") {
  const auto hosts = GENERATE(Hosts{{0, 1, 2, 3}}, Hosts{{0, 1}, {2, 3}}, Hosts{{0, 1, 2}, {3}});
  const bool from_another_thread = GENERATE(false, true);
  CAPTURE(hosts.size(), from_another_thread);
  const ThreadJob job = job_on(hosts);
  std::latch all_have_the_set(4);
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    std::uint64_t set = DDL_NO_PROCESS_SET;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, rank == 1 ? -1 : 0, 0, &set), "split");
    all_have_the_set.arrive_and_wait();
    std::string sentence;
    const auto expect_aborted = [&](ddl_status status, const std::string& call) {
      sentence = ddl_last_error();
      expect_status(status, DDL_ERROR_ABORTED, call);
      expect_contains(sentence, "rank 1 on host");
      expect_contains(sentence, "aborted the job with code 42 ");
      expect_contains(sentence, call);
      expect(sentence.ends_with(": the loss is  not a number"), sentence);
    };
    float value = 1;
    ddl_call_options in_set = DDL_CALL_OPTIONS_INIT;
    in_set.process_set = set;
    switch (rank) {
      case 0:
        // In the set, where rank 3 is missing.
        expect_aborted(ddl_allreduce(context, &value, &value, 1, DDL_FLOAT32, DDL_SUM, &in_set), "allreduce");
        break;
      case 1: {
        const auto abort = [&] {
          expect_ok(ddl_abort(context, 0x12A, "the loss is\n\tnot a number"), "abort");
        };
        if (!from_another_thread) return abort();
        std::thread other([&] {
          std::this_thread::yield();
          abort();
        });
        const ddl_status status = ddl_barrier(context, nullptr);
        sentence = ddl_last_error();
        other.join();
        expect_aborted(status, "barrier");
        return;
      }
      case 2: expect_aborted(ddl_recv(context, &value, 1, DDL_FLOAT32, 3, nullptr), "transfer"); break;
      default: expect_aborted(ddl_barrier(context, nullptr), "barrier");
    }
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_ABORTED, "the next call");
    expect_contains(ddl_last_error(), "the loss is  not a number");
    expect_status(ddl_abort(nullptr, 1, ""), DDL_ERROR_INVALID_ARGUMENT, "abort of no context");
  });
}
