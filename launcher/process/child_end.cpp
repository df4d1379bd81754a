#include "launcher/process/child_end.h"

#include <poll.h>
#include <sys/wait.h>

#include "base/pidfd.h"
#include "base/text.h"

namespace ddl::launcher {

std::string describe_child_end(pid_t pid) {
  constexpr int kWaitMilliseconds = 1000;
  if (const auto pidfd = open_pidfd(pid)) {
    pollfd entry{pidfd->get(), POLLIN, 0};
    retry_eintr([&] { return ::poll(&entry, 1, kWaitMilliseconds); });
  }
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) return "stopped answering";
  if (WIFSIGNALED(status)) return "was killed by " + signal_text(WTERMSIG(status));
  return "exited with " + std::to_string(WEXITSTATUS(status));
}

}  // namespace ddl::launcher
