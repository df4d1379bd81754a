#include "bench/process_table.h"

#include <unistd.h>

#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"

namespace ddl::bench {
namespace {

struct Stat {
  char state = 'X';
  pid_t parent = 0;
  double cpu_seconds = 0;  // in clock ticks' resolution
};

// proc(5): "pid (name) state ppid ... utime stime", where the name may itself hold blanks and parentheses.
std::optional<Stat> parse_stat(const std::string& text) {
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 > text.size()) return std::nullopt;
  const auto fields = split(std::string_view(text).substr(end_of_name + 2), ' ');
  if (fields.size() < 13) return std::nullopt;
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  Stat stat;
  stat.state = fields[0].empty() ? 'X' : fields[0][0];
  stat.parent = static_cast<pid_t>(parse_integer(fields[1]).value_or(0));
  stat.cpu_seconds = tick * static_cast<double>(parse_integer(fields[11]).value_or(0) +
                                                parse_integer(fields[12]).value_or(0));
  return stat;
}

std::optional<Stat> read_stat(const std::string& folder) {
  const auto text = read_file(folder + "/stat");
  if (!text) return std::nullopt;
  return parse_stat(*text);
}

}  // namespace

std::vector<pid_t> descendants(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const auto pid = parse_integer(entry.path().filename().native());
    if (!pid) continue;
    const auto stat = read_stat(entry.path());
    if (stat && stat->state != 'Z' && stat->state != 'X')
      children.emplace(stat->parent, static_cast<pid_t>(*pid));
  }
  std::vector<pid_t> found;
  std::vector<pid_t> to_visit{ancestor};
  while (!to_visit.empty()) {
    const auto [first, last] = children.equal_range(to_visit.back());
    to_visit.pop_back();
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
      to_visit.push_back(child->second);
    }
  }
  return found;
}

std::string program_of(pid_t pid) {
  std::error_code gone;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), gone).native();
}

Result<MemoryUse> memory_use(pid_t pid) {
  auto text = read_file(fmt::format("/proc/{}/smaps_rollup", pid));
  if (!text) return fail(std::move(text.error()));
  MemoryUse use;
  for (const std::string_view line : split(*text, '\n')) {
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
    } else if (const auto stat = read_stat(thread.path())) {
      seconds += stat->cpu_seconds;
    }
  }
  if (gone) return fail(errno_error("read " + folder, gone.value()));
  return seconds;
}

}  // namespace ddl::bench
