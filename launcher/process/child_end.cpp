#include "launcher/process/child_end.h"

#include <sys/wait.h>

#include "base/deadline.h"
#include "base/process.h"
#include "base/text.h"

namespace ddl::launcher {

std::string describe_child_end(pid_t pid) {
  constexpr std::chrono::seconds kPatience{1};
  (void)wait_for_end(pid, Deadline::after(kPatience));
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) return "stopped answering";
  if (WIFSIGNALED(status)) return "was killed by " + signal_text(WTERMSIG(status));
  return "exited with " + std::to_string(WEXITSTATUS(status));
}

}  // namespace ddl::launcher
