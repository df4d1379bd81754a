#include "launcher/process/is_stopped.h"

#include <string>

#include "base/unique_fd.h"

namespace ddl::launcher {

bool is_stopped(pid_t pid) {
  // proc(5): "71 (name) T ..."; the name may hold anything.
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos || name_end + 2 >= stat->size()) return false;
  return (*stat)[name_end + 2] == 'T';
}

}  // namespace ddl::launcher
