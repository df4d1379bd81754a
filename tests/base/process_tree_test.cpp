#include "base/process_tree.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "base/process.h"
#include "support/processes.h"
#include "support/skip.h"

using ddl::become_subreaper;
using ddl::descendants_of;
using ddl::kill_descendants;
using ddl::ProcessId;
using ddl::signal_process;
using ddl::wait_for_descendants;
using namespace ddl::test;

namespace {

std::set<pid_t> pids_of(const std::vector<ProcessId>& processes) {
  std::set<pid_t> pids;
  for (const auto& process : processes) pids.insert(process.pid);
  return pids;
}

ProcessId only_descendant() {
  const auto all = descendants_of(::getpid());
  REQUIRE(all.size() == 1);
  return all[0];
}

/// Whatever a test leaves behind ends with it.
struct DescendantsFixture {
  DescendantsFixture() { become_subreaper(); }
  ~DescendantsFixture() { kill_descendants(soon()); }
  Readiness ready;
};

}  // namespace

TEST_CASE_METHOD(DescendantsFixture,
                 "descendants are found over generations, also what called setsid or lost its parent") {
  const auto pids = test_pipe();
  const auto report_pid = [&] {
    const pid_t self = ::getpid();
    (void)!::write(pids.second.get(), &self, sizeof self);
    ready.report();
  };
  fork_process([&] {
    report_pid();
    fork_process([&] {
      ::setsid();
      report_pid();
      sleep_for_ever();
    });
    fork_process([&] {  // ends, and leaves an orphan that is a session of its own
      const pid_t parent = ::getpid();
      fork_process([&] {
        ::setsid();
        ::prctl(PR_SET_NAME, "odd) R 1 (name");  // which a naive reader of /proc/PID/stat misreads
        // While it gets another parent, a list may lack it.
        while (::getppid() == parent) ::sched_yield();
        report_pid();
        sleep_for_ever();
      });
    });
    ::wait(nullptr);
    sleep_for_ever();
  });
  ready.wait_for(3);
  std::set<pid_t> expected;
  for (int i = 0; i < 3; ++i) {
    pid_t pid = 0;
    REQUIRE(::read(pids.first.get(), &pid, sizeof pid) == sizeof pid);
    expected.insert(pid);
  }
  // The parent of the orphan may still be ending; it is the only other one.
  auto found = pids_of(descendants_of(::getpid()));
  CHECK(std::includes(found.begin(), found.end(), expected.begin(), expected.end()));

  CHECK(kill_descendants(soon()) >= 3);
  for (const pid_t pid : expected) CHECK_FALSE(exists(pid));
  CHECK(descendants_of(::getpid()).empty());
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // no zombie is left
  CHECK(errno == ECHILD);
}

TEST_CASE_METHOD(DescendantsFixture, "a signal for all descendants reaches parents before their children") {
  constexpr int kGenerations = 4;
  const auto families = test_pipe();  // of each process its pid and its parent's
  const std::function<void(int)> live = [&](int left) {
    if (left > 0) fork_process([&] { live(left - 1); });
    const std::array<pid_t, 2> family = {::getpid(), ::getppid()};
    (void)!::write(families.second.get(), family.data(), sizeof family);
    ready.report();
    sleep_for_ever();
  };
  fork_process([&] { live(kGenerations - 1); });
  ready.wait_for(kGenerations);
  std::map<pid_t, pid_t> parents;
  for (int i = 0; i < kGenerations; ++i) {
    std::array<pid_t, 2> family{};
    REQUIRE(::read(families.first.get(), family.data(), sizeof family) == sizeof family);
    parents.emplace(family[0], family[1]);
  }
  pid_t before = ::getpid();
  const auto signalled = ddl::signal_descendants(SIGKILL);
  REQUIRE(signalled.size() == kGenerations);
  for (const ProcessId& process : signalled)
    CHECK(parents.at(process.pid) == std::exchange(before, process.pid));
  CHECK(wait_for_descendants(soon()));
}

TEST_CASE_METHOD(DescendantsFixture, "a process that has ended and is not reaped is no descendant") {
  const pid_t pid = fork_process([] {});
  const auto pidfd = ddl::open_pidfd(pid);
  REQUIRE(pidfd);
  REQUIRE(ends_soon(*pidfd));
  CHECK(exists(pid));
  CHECK(descendants_of(::getpid()).empty());
  CHECK(wait_for_descendants(soon()));
  CHECK_FALSE(exists(pid));
}

TEST_CASE_METHOD(DescendantsFixture,
                 "a signal reaches the process that was found, and not one that has taken its number") {
  const pid_t pid = fork_process([&] {
    ready.report();
    sleep_for_ever();
  });
  ready.wait_for(1);
  const ProcessId process = only_descendant();
  CHECK(process.pid == pid);
  CHECK(process.start_time > 0);
  const auto pidfd = ddl::open_pidfd(pid);
  REQUIRE(pidfd);

  signal_process({process.pid, process.start_time + 1}, SIGKILL);
  signal_process({process.pid, process.start_time - 1}, SIGKILL);
  CHECK_FALSE(ddl::has_ended(pidfd->get()));
  signal_process(process, SIGTERM);
  REQUIRE(ends_soon(*pidfd));
  const int status = reap(pid);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  signal_process(process, SIGTERM);  // gone: nothing
}

TEST_CASE_METHOD(
    DescendantsFixture,
    "a process whose first thread has ended is a descendant until its other threads have ended") {
  const auto stop = test_pipe();
  const auto start = [&] {
    const pid_t pid = fork_process([&] {
      std::thread([&] {
        // Only the first thread's end makes the process a zombie with a thread that runs.
        while (ddl::read_process_stat(::getpid())->state != 'Z') ::sched_yield();
        ready.report();
        char byte;
        (void)!::read(stop.first.get(), &byte, 1);
        ::_exit(0);
      }).detach();
      ::syscall(SYS_exit, 0);  // of this thread only
    });
    ready.wait_for(1);
    return pid;
  };
  const pid_t pid = start();
  CHECK(only_descendant().pid == pid);
  CHECK_FALSE(wait_for_descendants(ddl::Deadline::after(std::chrono::milliseconds(20))));
  REQUIRE(::write(stop.second.get(), "x", 1) == 1);
  CHECK(wait_for_descendants(soon()));

  start();
  CHECK(kill_descendants(soon()) == 1);
  CHECK(descendants_of(::getpid()).empty());
}

TEST_CASE_METHOD(DescendantsFixture, "without descendants there is nothing to wait for or kill") {
  CHECK(wait_for_descendants(soon()));
  CHECK(kill_descendants(soon()) == 0);
}

TEST_CASE_METHOD(DescendantsFixture,
                 "waiting ends at the deadline if something still runs, and when the last one has ended") {
  const auto stop = test_pipe();
  fork_process([&] {
    fork_process([&] {
      ::setsid();
      ready.report();
      char byte;
      (void)!::read(stop.first.get(), &byte, 1);
    });
  });
  ready.wait_for(1);
  CHECK_FALSE(wait_for_descendants(ddl::Deadline::after(std::chrono::milliseconds(20))));
  REQUIRE(::write(stop.second.get(), "x", 1) == 1);
  CHECK(wait_for_descendants(soon()));
  CHECK(descendants_of(::getpid()).empty());
}

TEST_CASE_METHOD(DescendantsFixture,
                 "killing ends what forks as fast as it can, and what ignores every signal") {
  for (int i = 0; i < 2; ++i) {
    fork_process([&] {
      ready.report();
      for (;;) {  // each generation leaves at once: only its child goes on
        const pid_t child = ::fork();
        if (child > 0) ::_exit(0);
        if (child == 0) {
          ::setsid();
          ::alarm(120);
        }
      }
    });
  }
  fork_process([&] {
    for (int signal = 1; signal < 32; ++signal) std::signal(signal, SIG_IGN);
    ready.report();
    sleep_for_ever();
  });
  ready.wait_for(3);
  CHECK(kill_descendants(soon()) >= 1);
  CHECK(descendants_of(::getpid()).empty());
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

// "something & exec ddlrun ...": something becomes a child of ddlrun's process and is no part of the job.
TEST_CASE_METHOD(DescendantsFixture,
                 "preexisting children and their descendants are neither waited for nor killed") {
  const auto tree = [&] {
    const pid_t pid = fork_process([&] {
      fork_process([&] {
        ready.report();
        sleep_for_ever();
      });
      ready.report();
      sleep_for_ever();
    });
    ready.wait_for(2);
    return pid;
  };
  const pid_t preexisting_child = tree();
  const auto preexisting = descendants_of(::getpid());
  REQUIRE(preexisting.size() == 2);
  CHECK(wait_for_descendants(soon(), preexisting));
  CHECK(kill_descendants(soon(), preexisting) == 0);

  tree();
  CHECK_FALSE(wait_for_descendants(ddl::Deadline::after(std::chrono::milliseconds(20)), preexisting));
  CHECK(kill_descendants(soon(), preexisting) == 2);
  CHECK(exists(preexisting_child));
  CHECK(descendants_of(::getpid()).size() == 2);
}

// Old kernels, and containers that filter system calls.
TEST_CASE_METHOD(DescendantsFixture,
                 "descendants are ended, and waited for without haste, also without pidfds") {
  const pid_t tester = fork_process([&] {
    const auto require = [](bool holds, int line) {
      if (holds) return;
      std::fprintf(stderr, "without pidfds: line %d\n", line);
      ::_exit(1);
    };
    become_subreaper();
    if (!refuse_system_call(SYS_pidfd_open, EPERM)) ::_exit(77);
    const auto start_tree = [&] {
      fork_process([&] {
        fork_process([&] {
          ::setsid();
          ready.report();
          sleep_for_ever();
        });
        sleep_for_ever();
      });
      ready.wait_for(1);
    };
    start_tree();
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    require(!wait_for_descendants(ddl::Deadline::after(std::chrono::milliseconds(10))), __LINE__);
    ::getrusage(RUSAGE_SELF, &after);
    require(after.ru_nvcsw > before.ru_nvcsw, __LINE__);  // it has slept
    require(kill_descendants(soon()) == 2, __LINE__);
    require(::waitpid(-1, nullptr, 0) == -1 && errno == ECHILD, __LINE__);

    const pid_t exits = fork_process([] { ::_exit(3); });
    require(ddl::wait_for_end(exits, soon()), __LINE__);
    int end = 0;
    require(::waitpid(exits, &end, 0) == exits && WIFEXITED(end) && WEXITSTATUS(end) == 3, __LINE__);
    const pid_t stays = fork_process(sleep_for_ever);
    require(!ddl::wait_for_end(stays, ddl::Deadline::after(std::chrono::milliseconds(1))), __LINE__);
    ::kill(stays, SIGKILL);
    require(ddl::wait_for_end(stays, soon()), __LINE__);
  });
  const int status = reap(tester);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) DDL_SKIP("system calls cannot be filtered here");
  CHECK(status == 0);
}
