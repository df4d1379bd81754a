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

bool has_child_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

bool wait_for_end(pid_t child, Deadline deadline) {
  const auto pidfd = open_pidfd(child);
  for (;;) {
    if (has_child_ended(child)) return true;
    if (deadline.has_passed()) return false;
    pollfd entry{pidfd ? pidfd->get() : -1, POLLIN, 0};
    (void)::poll(&entry, 1, pidfd ? deadline.poll_milliseconds() : nap_milliseconds(deadline));
  }
}

int nap_milliseconds(Deadline deadline) {
  constexpr int kNap = 5;
  const int left = deadline.poll_milliseconds();
  return left < 0 ? kNap : std::min(left, kNap);
}

}  // namespace ddl
