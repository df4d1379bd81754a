#include "bench/process_table.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/process_tree.h"
#include "bench/measured_run.h"
#include "support/catch.h"

namespace ddl::bench {
namespace {

TEST_CASE("grandchildren are found, and their programs") {
  REQUIRE(become_subreaper());
  auto child =
      MeasuredRun::start({.argv = {"/bin/sh", "-c", "/bin/sh -c 'sleep 1000 & echo up; wait' & wait"}});
  REQUIRE(child);
  REQUIRE(child->wait_for_output("up", 1, Deadline::after_seconds(30)));
  const auto found = descendants_of(child->pid());
  REQUIRE(found.size() == 2);
  const auto all = descendants_of(::getpid());
  CHECK(all.size() == 3);
  CHECK(std::any_of(all.begin(), all.end(), [&](const ProcessId& one) { return one.pid == child->pid(); }));
  for (const ProcessId& process : found) CHECK(!program_of(process.pid).empty());
}

TEST_CASE("a process that does not exist has no program and no figures") {
  constexpr pid_t kNoProcess = 1 << 30;  // above the kernel's largest pid
  CHECK(program_of(kNoProcess).empty());
  CHECK(!memory_use(kNoProcess));
  CHECK(!cpu_seconds(kNoProcess));
}

TEST_CASE("unique memory grows by what a process writes") {
  constexpr std::size_t kSize = 8 << 20;
  const auto before = memory_use(::getpid());
  void* pages = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  std::memset(pages, 1, kSize);
  const auto after = memory_use(::getpid());
  ::munmap(pages, kSize);
  REQUIRE(before);
  REQUIRE(after);
  // A smaller increase is correct, too: meanwhile another process may have mapped a library that only this one had.
  CHECK(after->unique - before->unique >= static_cast<std::int64_t>(kSize / 4 * 3));
  CHECK(after->unique <= after->resident);
}

TEST_CASE("CPU seconds grow while a process computes") {
  const auto before = cpu_seconds(::getpid());
  REQUIRE(before);
  auto after = before;
  // Ends as soon as the CPU time grows; the TIMEOUT of the test covers the other case.
  while (after && *after < *before + 0.02) after = cpu_seconds(::getpid());
  CHECK(after);
}

TEST_CASE("CPU seconds of a process and of the children that it has waited for") {
  // The shell computes in a child of its own, waits for it, and stays.
  REQUIRE(become_subreaper());
  auto child = MeasuredRun::start(
      {.argv = {"/bin/sh", "-c",
                "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); echo done; sleep 1000 & wait"}});
  REQUIRE(child);
  REQUIRE(child->wait_for_output("done", 1, Deadline::after_seconds(30)));
  const auto own = cpu_seconds(child->pid());
  REQUIRE(own);
  CHECK(cpu_seconds_with_reaped(child->pid()) > *own + 0.02);
  CHECK(cpu_seconds_with_reaped(1 << 30) == 0);
}

TEST_CASE("the end of one process of several is waited for, and no longer than until the deadline") {
  REQUIRE(become_subreaper());
  auto child = MeasuredRun::start({.argv = {"/bin/sh", "-c", "sleep 1000 & echo up; wait"}});
  REQUIRE(child);
  REQUIRE(child->wait_for_output("up", 1, Deadline::after_seconds(30)));
  const auto sleepers = descendants_of(child->pid()), both = descendants_of(::getpid());
  REQUIRE(sleepers.size() == 1);
  REQUIRE(both.size() == 2);
  wait_until_one_ends(both, Deadline::after(std::chrono::milliseconds(1)));
  CHECK(!descendants_of(child->pid()).empty());
  signal_process(sleepers[0], SIGKILL);
  wait_until_one_ends(sleepers, Deadline::after_seconds(30));
  CHECK(child->finish(Deadline::after_seconds(30)));
}

}  // namespace
}  // namespace ddl::bench
