#include "bench/process_table.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"

namespace ddl::bench {
std::string program_of(pid_t pid) {
  std::error_code gone;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), gone).native();
}

Result<MemoryUse> memory_use(pid_t pid) {
  DDL_ASSIGN(text, read_file(fmt::format("/proc/{}/smaps_rollup", pid)));
  MemoryUse use;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view rest = trim(line.substr(line.find(':') + 1));
    const std::int64_t bytes = 1024 * parse_integer(rest.substr(0, rest.find(' '))).value_or(0);
    if (line.starts_with("Private_")) use.unique += bytes;
    if (line.starts_with("Rss:")) use.resident += bytes;
  }
  return use;
}

Result<double> cpu_seconds(pid_t pid) {
  double seconds = 0;
  const std::string folder = fmt::format("/proc/{}/task", pid);
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator(folder, gone)) {
    const auto schedstat = read_file(thread.path().native() + "/schedstat");
    const auto nanoseconds = schedstat ? parse_integer(split(*schedstat, ' ')[0]) : std::nullopt;
    if (nanoseconds) {
      seconds += static_cast<double>(*nanoseconds) * 1e-9;
    } else if (const auto text = read_file(thread.path().native() + "/stat")) {
      if (const auto stat = parse_process_stat(*text)) seconds += stat->cpu_seconds;
    }
  }
  if (gone) return fail(errno_error("read " + folder, gone.value()));
  return seconds;
}

double cpu_seconds_with_reaped(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? stat->cpu_seconds + stat->reaped_cpu_seconds : 0;
}

}  // namespace ddl::bench
