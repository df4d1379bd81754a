#include "base/pidfd.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace ddl {

Result<UniqueFd> open_pidfd(pid_t pid) {
  // By number: glibc has wrappers only since 2.36, and clusters run older ones.
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return fail_errno("pidfd_open of process " + std::to_string(pid));
  return UniqueFd(static_cast<int>(fd));
}

Status send_signal(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) != 0 && errno != ESRCH) {
    return fail_errno("pidfd_send_signal");
  }
  return {};
}

bool has_ended(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return retry_eintr([&] { return ::poll(&entry, 1, 0); }) == 1;
}

bool wait_for_end(pid_t child, Deadline deadline) {
  const auto pidfd = open_pidfd(child);
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return true;
    if (info.si_pid == child) return true;
    if (deadline.has_passed()) return false;
    if (!pidfd) {
      nap(deadline);
      continue;
    }
    pollfd entry{pidfd->get(), POLLIN, 0};
    (void)::poll(&entry, 1, deadline.poll_milliseconds());
  }
}

void nap(Deadline deadline) {
  constexpr int kMilliseconds = 5;
  const int left = deadline.poll_milliseconds();
  (void)::poll(nullptr, 0, left < 0 ? kMilliseconds : std::min(left, kMilliseconds));
}

}  // namespace ddl
