#include "base/pidfd.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace ddl
