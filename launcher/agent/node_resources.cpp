#include "launcher/agent/node_resources.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "base/text.h"

namespace ddl::launcher {
namespace fs = std::filesystem;

NodeMemory parse_meminfo(std::string_view text) {
  NodeMemory memory;
  for (const std::string_view line : split(text, '\n')) {
    // "MemTotal:       65843028 kB"
    const auto value_of = [line](std::string_view name) -> std::int64_t {
      if (!line.starts_with(name) || !line.ends_with(" kB")) return 0;
      const auto kilobytes = parse_integer(trim(line.substr(name.size(), line.size() - name.size() - 3)));
      constexpr std::int64_t kMost = INT64_MAX / 1024;
      return kilobytes && *kilobytes > 0 && *kilobytes <= kMost ? *kilobytes * 1024 : 0;
    };
    if (const auto total = value_of("MemTotal:")) memory.total_bytes = total;
    if (const auto available = value_of("MemAvailable:")) memory.available_bytes = available;
  }
  return memory;
}

NodeMemory node_memory() { return parse_meminfo(read_file("/proc/meminfo").value_or("")); }

std::int64_t soft_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return -1;
  return limit.rlim_cur > INT64_MAX ? -1
                                    : static_cast<std::int64_t>(limit.rlim_cur);  // RLIM_INFINITY is all ones
}

std::int64_t free_bytes(const std::string& directory) {
  struct statvfs file_system {};
  if (::statvfs(directory.c_str(), &file_system) != 0) return -1;
  return static_cast<std::int64_t>(file_system.f_bavail) * static_cast<std::int64_t>(file_system.f_frsize);
}

std::string tmp_directory() {
  const char* directory = std::getenv("TMPDIR");
  return directory != nullptr && directory[0] == '/' ? directory : "/tmp";
}

std::string installed_libddl() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  for (const char* directory : {"../lib", DDL_LIBDIR_FROM_BINDIR}) {
    const fs::path found = fs::canonical(program.parent_path() / directory / "libddl.so.0", error);
    if (!error) return found.string();
  }
  return "";
}

}  // namespace ddl::launcher
