// Waits that end because the program wants that after a signal: ddl_set_interrupt_check().
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "runtime/support/board_bootstrap.h"
#include "runtime/support/expect.h"
#include "runtime/support/process_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using namespace ddl::runtime;
using namespace ddl::runtime::test;

namespace {

volatile sig_atomic_t signals = 0;

/// What the ranks' checks share with the test.
struct Checked {
  int waits = -1;          ///< a pipe: the check says there that its rank sleeps
  int over = -1;           ///< a pipe: after the signal
  bool interrupts = true;  ///< the wait ends when a signal has come
  pthread_t thread{};      ///< that waits
  bool was_elsewhere = false;
};

std::int32_t look(void* argument) {
  auto& checked = *static_cast<Checked*>(argument);
  if (!pthread_equal(checked.thread, pthread_self())) checked.was_elsewhere = true;
  // Without a signal: because of the time that has passed.
  if (signals == 0) (void)!::write(checked.waits, "w", 1);
  if (signals == 0) return 0;
  if (!checked.interrupts) (void)!::write(checked.over, "w", 1);
  return checked.interrupts ? 1 : 0;
}

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { signals = signals + 1; };
  sigaction(SIGUSR1, &action, nullptr);
}

void read_byte(int fd) {
  char byte = 0;
  expect(::read(fd, &byte, 1) == 1, "the pipe is at its end");
}

ddl_status wait_for_tensor(ddl_context* context) {
  std::vector<float> values(4);
  ddl_handle* handle = nullptr;
  expect_ok(ddl_allreduce_async(context, "t", values.data(), values.data(), values.size(), DDL_FLOAT32,
                                DDL_SUM, nullptr, &handle),
            "submitting");
  return ddl_wait(handle);
}

/// Another thread has begun to wait before.
ddl_status wait_beside_thread(ddl_context* context) {
  std::vector<float> values(4);
  ddl_handle* first = nullptr;
  expect_ok(ddl_allreduce_async(context, "u", values.data(), values.data(), values.size(), DDL_FLOAT32,
                                DDL_SUM, nullptr, &first),
            "submitting");
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread other([first] { (void)ddl_wait(first); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const ddl_status status = wait_for_tensor(context);
  const std::string sentence = ddl_last_error();
  other.join();
  expect_contains(sentence, "was interrupted");
  return status;
}

using Wait = std::function<ddl_status(ddl_context*)>;
const std::map<std::string, Wait> kWaits = {
    {"barrier", [](ddl_context* context) { return ddl_barrier(context, nullptr); }},
    {"tensor", wait_for_tensor},
    {"tensor beside a thread", wait_beside_thread},
    {"join", [](ddl_context* context) { return ddl_join(context, DDL_WORLD, nullptr); }},
    {"receive",
     [](ddl_context* context) {
       int value = 0;
       return ddl_recv(context, &value, 1, DDL_INT32, 1, nullptr);
     }},
};

/// Rank 0 waits for rank 1, which sends it a signal once it sleeps.
std::vector<RankEnd> run(const std::vector<int>& sizes, const Wait& wait, bool interrupts) {
  auto waits = ddl::make_pipe(), over = ddl::make_pipe(), pids = ddl::make_pipe();
  REQUIRE((waits && over && pids));
  ProcessJob job;
  job.ranks = 2;
  if (sizes.size() > 1) job.hosts = hosts_of_sizes(sizes);
  return job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    if (place.rank() == 0) {
      handle_signals();
      Checked checked{waits->second.get(), over->second.get(), interrupts, pthread_self()};
      ddl_set_interrupt_check(look, &checked);
      const pid_t own = ::getpid();
      expect(::write(pids->second.get(), &own, sizeof own) == sizeof own, "write");
      const ddl_status status = wait(context);
      std::string sentence = ddl_last_error();
      if (interrupts) (void)!::write(over->second.get(), "w", 1);
      expect(!checked.was_elsewhere, "the check was called on another thread than the waiting one");
      expect_status(status, interrupts ? DDL_ERROR_INTERRUPTED : DDL_OK, "the wait");
      if (interrupts) expect(ddl_barrier(context, nullptr) != DDL_OK, "the context is not aborted");
      ddl_set_interrupt_check(nullptr, nullptr);
      expect_ok(ddl_finalize(context), "finalize");
      return interrupts ? sentence : std::string();
    }
    pid_t other = 0;
    expect(::read(pids->first.get(), &other, sizeof other) == sizeof other, "read");
    read_byte(waits->first.get());
    ::kill(other, SIGUSR1);
    read_byte(over->first.get());
    if (interrupts) {
      // Over TCP what the other rank has sent before may complete one call.
      ddl_status status = ddl_barrier(context, nullptr);
      if (status == DDL_OK) status = ddl_barrier(context, nullptr);
      expect_status(status, DDL_ERROR_INTERRUPTED, "the other rank's call");
    } else {
      expect_ok(ddl_barrier(context, nullptr), "barrier");
    }
    std::string sentence = interrupts ? ddl_last_error() : "";
    expect_ok(ddl_finalize(context), "finalize");
    return sentence;
  });
}

}  // namespace

TEST_CASE(
    "a program may end every kind of wait after a signal, and the other ranks are told who was interrupted") {
  const auto sizes = GENERATE(std::vector{2}, std::vector{1, 1});
  for (const auto& [name, wait] : kWaits) {
    CAPTURE(name, sizes.size());
    const auto ends = run(sizes, wait, true);
    const std::string who = "rank 0 on host0 (pid " + std::to_string(ends[0].pid) + ") was interrupted ";
    for (const RankEnd& end : ends) {
      INFO(end.report);
      CHECK(end.exit_code == 0);
      CHECK(end.report.find(who) == 0);
    }
  }
}

TEST_CASE("a wait goes on if the program has only looked at the signal") {
  for (const auto& end : run(GENERATE(std::vector{2}, std::vector{1, 1}), kWaits.at("barrier"), false)) {
    CHECK(end.exit_code == 0);
    CHECK(end.report.empty());
  }
}
