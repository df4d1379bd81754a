#include "launcher/process/close_fds.h"

#include <dirent.h>
#include <unistd.h>

#include <vector>

#include "base/text.h"

namespace ddl::launcher {

void close_all_fds_but(int keep, int also_keep) {
  // By listing them: close_range(2) is missing before Linux 5.9, and the limit of open files may be a billion.
  std::vector<int> found;
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    const auto fd = parse_integer(entry->d_name);
    if (fd && *fd > 2 && *fd != ::dirfd(directory)) found.push_back(static_cast<int>(*fd));
  }
  ::closedir(directory);
  for (const int fd : found) {
    if (fd != keep && fd != also_keep) ::close(fd);
  }
}

}  // namespace ddl::launcher
