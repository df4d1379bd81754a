// Child processes of a test, which may end at any moment. Without headers of base/, whose ddl::Error is another one than
// that of the public headers.
#pragma once

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "support/catch.h"

namespace ddl::test {

/// Forks a process that runs body and then exits with 0. It has every signal at its default, and ends by itself should the
/// test crash.
inline pid_t fork_child(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid > 0) return pid;
  for (int signal = 1; signal < 32; ++signal) std::signal(signal, SIG_DFL);  // Catch2 handles some
  ::alarm(120);
  body();
  ::_exit(0);
}

/// The next wait status of a child.
inline int wait_for_child(pid_t pid) {
  int status = -1;
  pid_t ended = -1;
  do {
    ended = ::waitpid(pid, &status, 0);
  } while (ended == -1 && errno == EINTR);
  REQUIRE(ended == pid);
  return status;
}

/// Whether this process may trace its children: not in every container.
inline bool can_trace() {
  const pid_t pid = fork_child([] { ::_exit(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1); });
  return wait_for_child(pid) == 0;
}

/// Runs body in a child, and kills that when it enters or leaves a system call for the stops-th time. False: it has ended
/// before, with 0.
inline bool is_killed_at_stop(int stops, const std::function<void()>& body) {
  const pid_t pid = fork_child([&] {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    std::raise(SIGSTOP);
    body();
  });
  int status = wait_for_child(pid);
  REQUIRE(WIFSTOPPED(status));
  // Should the test crash, the child is killed, too.
  REQUIRE(::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD) == 0);
  for (int stop = 0; stop < stops; ++stop) {
    REQUIRE(::ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr) == 0);
    status = wait_for_child(pid);
    if (WIFEXITED(status)) {
      CHECK(WEXITSTATUS(status) == 0);
      return false;
    }
    REQUIRE(WIFSTOPPED(status));
    REQUIRE(WSTOPSIG(status) == (SIGTRAP | 0x80));  // no signal, such as that of a crash
  }
  REQUIRE(::kill(pid, SIGKILL) == 0);
  status = wait_for_child(pid);
  REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  return true;
}

/// The calls of fsync and rename that body makes in a child, in order: what is left when the machine loses its power cannot
/// be tried here.
inline std::vector<std::string> syncs_and_renames(const std::function<void()>& body) {
  const pid_t pid = fork_child([&] {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    std::raise(SIGSTOP);
    body();
  });
  REQUIRE(WIFSTOPPED(wait_for_child(pid)));
  REQUIRE(::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD) == 0);
  std::vector<std::string> calls;
  for (;;) {
    REQUIRE(::ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr) == 0);
    const int status = wait_for_child(pid);
    if (WIFEXITED(status)) return calls;
    REQUIRE(WIFSTOPPED(status));
    __ptrace_syscall_info info = {};
    REQUIRE(::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 0);
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
    switch (info.entry.nr) {
      case SYS_fsync: calls.emplace_back("fsync"); break;
#ifdef SYS_rename
      case SYS_rename:
#endif
#ifdef SYS_renameat
      case SYS_renameat:
#endif
      case SYS_renameat2: calls.emplace_back("rename"); break;
      default: break;
    }
  }
}

}  // namespace ddl::test
