#include "launcher/process/child.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/process.h"
#include "base/text.h"

namespace ddl::launcher {

void close_all_fds_but(int keep, int also_keep) {
  // By listing them: close_range(2) is missing before Linux 5.9, and the limit of open files may be a billion.
  std::vector<int> found;
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    const auto fd = parse_integer(entry->d_name);
    if (fd && *fd > 2 && *fd != ::dirfd(directory)) found.push_back(*fd);
  }
  ::closedir(directory);
  for (const int fd : found) {
    if (fd != keep && fd != also_keep) ::close(fd);
  }
}

rlimit open_files_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

void raise_open_files_limit() {
  rlimit limit = open_files_limit();
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Status check_open_files_limit() {
  // What a job of one rank on this machine takes, measured and rounded up. Below that, libraries fail first, each in
  // its own way.
  constexpr rlim_t kMinOpenFiles = 32;
  const rlimit limit = open_files_limit();
  if (limit.rlim_cur >= kMinOpenFiles) return {};
  return fail(ErrorCode::kUnavailable,
              "only " + std::to_string(limit.rlim_cur) + " files may be open (ulimit -n; at most " +
                  std::to_string(limit.rlim_max) + ", ulimit -Hn), and ddlrun needs " +
                  std::to_string(kMinOpenFiles) +
                  ", and about 6 more for each rank of a node; raise the limit");
}

std::string describe_child_end(pid_t pid) {
  constexpr std::chrono::seconds kPatience{1};
  (void)wait_for_end(pid, Deadline::after(kPatience));
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) return "stopped answering";
  if (WIFSIGNALED(status)) return "was killed by " + signal_text(WTERMSIG(status));
  return "exited with " + std::to_string(WEXITSTATUS(status));
}

}  // namespace ddl::launcher
