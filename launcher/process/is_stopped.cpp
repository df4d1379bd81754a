#include "launcher/process/is_stopped.h"

#include "base/fd.h"

namespace ddl::launcher {

bool is_stopped(pid_t pid) {
  const auto stat = read_file(stat_path(pid));
  return stat && says_stopped(*stat);
}

std::string stat_path(pid_t pid) { return "/proc/" + std::to_string(pid) + "/stat"; }

bool says_stopped(std::string_view stat) {
  // "71 (name) T ..."; the name may hold anything.
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string_view::npos && name_end + 2 < stat.size() && stat[name_end + 2] == 'T';
}

}  // namespace ddl::launcher
