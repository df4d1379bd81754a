#include "bench/process_table.h"

#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"

namespace ddl::bench {
namespace {

struct Stat {
  char state = 'X';
  pid_t parent = 0;
  double cpu_seconds = 0;         // in clock ticks' resolution
  double reaped_cpu_seconds = 0;  // of the children that it has waited for, and theirs
};

// proc(5): "pid (name) state ppid ... utime stime cutime cstime", where the name may itself hold blanks and parentheses.
std::optional<Stat> parse_stat(const std::string& text) {
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 > text.size()) return std::nullopt;
  const auto fields = split(std::string_view(text).substr(end_of_name + 2), ' ');
  if (fields.size() < 15) return std::nullopt;
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  Stat stat;
  stat.state = fields[0].empty() ? 'X' : fields[0][0];
  stat.parent = static_cast<pid_t>(parse_integer(fields[1]).value_or(0));
  const auto ticks = [&](std::size_t index) {
    return static_cast<double>(parse_integer(fields[index]).value_or(0));
  };
  stat.cpu_seconds = tick * (ticks(11) + ticks(12));
  stat.reaped_cpu_seconds = tick * (ticks(13) + ticks(14));
  return stat;
}

std::optional<Stat> read_stat(const std::string& folder) {
  const auto text = read_file(folder + "/stat");
  if (!text) return std::nullopt;
  return parse_stat(*text);
}

}  // namespace

std::vector<pid_t> descendants(pid_t ancestor) { return descendants(std::vector<pid_t>{ancestor}); }

std::vector<pid_t> descendants(const std::vector<pid_t>& ancestors) {
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
  std::vector<pid_t> to_visit = ancestors;
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

void wait_until_one_ends(const std::vector<pid_t>& pids, Deadline deadline) {
  std::vector<UniqueFd> pidfds;  // of an empty list nothing ends: the zombies' parents are about to be told
  std::vector<pollfd> watched;
  for (const pid_t pid : pids) {
    auto pidfd = open_pidfd(pid);
    if (!pidfd && pidfd.error().system_errno() != ESRCH) ::poll(nullptr, 0, nap_milliseconds(deadline));
    if (!pidfd) return;  // it has just ended, or is to be looked at again
    watched.push_back({pidfd->get(), POLLIN, 0});
    pidfds.push_back(std::move(*pidfd));
  }
  ::poll(watched.data(), watched.size(), deadline.poll_milliseconds());
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

double cpu_seconds_with_reaped(pid_t pid) {
  const auto stat = read_stat(fmt::format("/proc/{}", pid));
  return stat ? stat->cpu_seconds + stat->reaped_cpu_seconds : 0;
}

}  // namespace ddl::bench
