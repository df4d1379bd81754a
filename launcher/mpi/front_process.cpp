#include "launcher/mpi/front_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ddl::launcher {

Result<std::optional<int>> stand_in_front(const sigset_t& signals) {
  const pid_t front = ::getpid();
  const pid_t behind = ::fork();
  if (behind < 0) return fail_errno("fork");
  if (behind == 0) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != front) ::raise(SIGTERM);  // it is blocked, and waits to be read
    return std::optional<int>();
  }
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // of mpirun's daemon here
  for (;;) {
    int status = 0;
    if (::waitpid(behind, &status, WNOHANG) == behind) {
      constexpr int kSignalBase = 128;
      return std::optional(WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status));
    }
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal > 0 && signal != SIGCHLD) ::kill(behind, signal);
  }
}

}  // namespace ddl::launcher
