// Messages with ranks as forked processes: on one host and on two, and when a rank dies.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"
#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/process_job.h"
#include "support/catch.h"
#include "support/skip.h"

using namespace ddl::conformance;
using namespace ddl::runtime::test;

TEST_CASE("messages conform with ranks as processes") {
  ProcessJob job;
  job.ranks = 3;
  job.hosts = GENERATE(Hosts{}, Hosts{{0, 2}, {1}});
  for (const RankEnd& end : job.run([](RankPlace& place) {
         ddl_context* context = place.join();
         check_messages(context, 5);
         expect_ok(ddl_finalize(context), "finalize");
         return std::string();
       })) {
    CAPTURE(end.report, end.signal);
    CHECK(end.exit_code == 0);
  }
}

TEST_CASE("a rank that has no descriptor left for a message says so, and which limit it is") {
#ifdef DDL_TEST_SANITIZED
  DDL_SKIP("a sanitizer needs descriptors of its own");
#endif
  ProcessJob job;
  job.ranks = 2;
  job.hosts = GENERATE(Hosts{}, Hosts{{0}, {1}});
  const bool sender_lacks = GENERATE(true, false);
  const auto ends = job.run([&](RankPlace& place) -> std::string {
    ddl_context* context = place.join();
    std::int32_t value = 1;
    ddl_handle* handle = nullptr;
    if ((place.rank() == 0) == sender_lacks) {
      const ddl::UniqueFd next(::dup(0));
      rlimit limit{};
      (void)::getrlimit(RLIMIT_NOFILE, &limit);
      limit.rlim_cur = static_cast<rlim_t>(next.get());  // the first number that is free
      (void)::setrlimit(RLIMIT_NOFILE, &limit);
    }
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    ddl_status failed = place.rank() == 0
                            ? ddl_send_async(context, &value, 1, DDL_INT32, 1, 2, nullptr, &handle)
                            : ddl_recv_async(context, &value, 1, DDL_INT32, 0, 2, nullptr, nullptr, &handle);
    if (failed == DDL_OK) failed = ddl_wait(handle);
    // A small message is complete before there is a connection; then the next call fails.
    if (failed == DDL_OK) failed = ddl_barrier(context, nullptr);
    std::string sentence = ddl_last_error();
    expect(failed != DDL_OK, "there was a descriptor");
    (void)ddl_finalize(context);
    return sentence;
  });
  for (const RankEnd& end : ends) {
    CAPTURE(job.hosts.size(), sender_lacks, end.report, end.signal);
    CHECK(end.exit_code == 0);
    CHECK(end.report.find("Too many open files") != std::string::npos);
    CHECK(end.report.find("ulimit -n") != std::string::npos);
  }
}

TEST_CASE("a rank that dies ends the messages that wait for it, and names it") {
  enum class State { kNotConnected, kConnected, kAnnounced, kGranted };
  ProcessJob job;
  job.ranks = 3;
  job.hosts = GENERATE(Hosts{}, Hosts{{0, 2}, {1}});
  const State state = GENERATE(State::kNotConnected, State::kConnected, State::kAnnounced, State::kGranted);
  const int from = GENERATE(1, DDL_ANY_RANK);
  constexpr int kVictim = 1;
  const auto ends = job.run([&](RankPlace& place) -> std::string {
    ddl_context* context = place.join();
    const int own = place.rank();
    std::vector<std::int32_t> values(1 << 22, own);
    ddl_handle* handle = nullptr;
    const auto exchange_one = [&] {
      std::int32_t one = 0;
      for (int other = 0; other < 3; ++other) {
        expect_ok(ddl_send_async(context, &own, 1, DDL_INT32, other, 1, nullptr, &handle), "send");
        expect_ok(ddl_wait(handle), "wait for a send");
        expect_ok(ddl_recv_async(context, &one, 1, DDL_INT32, other, 1, nullptr, nullptr, &handle), "recv");
        expect_ok(ddl_wait(handle), "wait for a receive");
        expect(one == other, "another message");
      }
    };
    if (state != State::kNotConnected) exchange_one();
    // A message of the victim's is under way to rank 0, and nobody grants it; or rank 0 sends to the victim.
    const bool victim_sends = state == State::kAnnounced;
    const bool victim_receives = state == State::kGranted;
    if (own == kVictim && victim_sends)
      expect_ok(ddl_send_async(context, values.data(), values.size(), DDL_INT32, 0, 2, nullptr, &handle),
                "send");
    if (own == 0 && victim_receives)
      expect_ok(
          ddl_send_async(context, values.data(), values.size(), DDL_INT32, kVictim, 2, nullptr, &handle),
          "send");
    else if (own != kVictim)
      expect_ok(ddl_recv_async(context, values.data(), 1, DDL_INT32, from, 3, nullptr, nullptr, &handle),
                "recv");
    (void)ddl_barrier(context, nullptr);
    if (own == kVictim) ::raise(SIGKILL);
    expect_status(ddl_wait(handle), DDL_ERROR_PEER_LOST, "a message after a death");
    std::string sentence = ddl_last_error();
    expect_ok(ddl_finalize(context), "finalize");
    return sentence;
  });
  for (int rank = 0; rank < job.ranks; ++rank) {
    const RankEnd& end = ends[static_cast<std::size_t>(rank)];
    CAPTURE(job.hosts.size(), static_cast<int>(state), from, rank, end.report, end.signal);
    if (rank == kVictim) {
      CHECK(end.signal == SIGKILL);
      continue;
    }
    CHECK(end.exit_code == 0);
    CHECK(end.report.find("rank 1 on host1 (pid " + std::to_string(ends[kVictim].pid) +
                          ") died during a message that is ") != std::string::npos);
  }
}
