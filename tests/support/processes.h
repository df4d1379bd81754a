// Real processes for tests: forked, ended at the latest after two minutes, and counted.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <functional>
#include <vector>

#include "base/deadline.h"
#include "base/process.h"
#include "base/process_tree.h"
#include "support/pipes.h"

namespace ddl::test {

/// From now on the system call with this number fails with this errno in the calling process and those that it starts,
/// which cannot be undone. False if system calls cannot be filtered here.
inline bool refuse_system_call(unsigned int number, unsigned int error) {
  std::array<sock_filter, 4> code{sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                  sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                                  sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                                  sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{code.size(), code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

inline Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

/// Forks a process that runs body and then exits with 0. It has every signal at its default, and ends by itself
/// should the test crash.
inline pid_t fork_process(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid > 0) return pid;
  for (int signal = 1; signal < 32; ++signal) std::signal(signal, SIG_DFL);  // Catch2 handles some
  ::alarm(120);
  body();
  ::_exit(0);
}

[[noreturn]] inline void sleep_for_ever() {
  for (;;) ::pause();
}

/// One byte for every process that is ready: report() in each of them, wait_for() in the test.
class Readiness {
 public:
  void report() const { (void)!::write(pipe_.second.get(), "x", 1); }
  void wait_for(int count) {
    for (const Deadline deadline = soon(); count > 0; --count) {
      pollfd entry{pipe_.first.get(), POLLIN, 0};
      REQUIRE(retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) == 1);
      char byte;
      REQUIRE(::read(pipe_.first.get(), &byte, 1) == 1);
    }
  }

 private:
  FdPair pipe_ = test_pipe();
};

/// True once the process has ended, even if it is not reaped yet.
inline bool ends_soon(const UniqueFd& pidfd) {
  pollfd entry{pidfd.get(), POLLIN, 0};
  return retry_eintr([&] { return ::poll(&entry, 1, soon().poll_milliseconds()); }) == 1;
}

/// Whether process pid runs or is a zombie.
inline bool exists(pid_t pid) { return ::kill(pid, 0) == 0; }

/// Reaps a child of this process; its wait status.
inline int reap(pid_t pid) {
  int status = -1;
  REQUIRE(retry_eintr([&] { return ::waitpid(pid, &status, 0); }) == pid);
  return status;
}

}  // namespace ddl::test
