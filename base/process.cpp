#include "base/process.h"

#include <dirent.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/text.h"

namespace ddl {

Result<UniqueFd> open_pidfd(pid_t pid) {
  // By number: glibc has wrappers only since 2.36, and clusters run older ones.
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return fail_errno("pidfd_open of process " + std::to_string(pid));
  return UniqueFd(static_cast<int>(fd));
}

Status send_signal(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) != 0 && errno != ESRCH) {
    return fail_errno("pidfd_send_signal");
  }
  return {};
}

bool has_ended(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return retry_eintr([&] { return ::poll(&entry, 1, 0); }) == 1;
}

bool has_child_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

bool wait_for_end(pid_t child, Deadline deadline) {
  if (has_child_ended(child)) return true;
  const auto pidfd = open_pidfd(child);
  for (;;) {
    if (has_child_ended(child)) return true;
    if (deadline.has_passed()) return false;
    pollfd entry{pidfd ? pidfd->get() : -1, POLLIN, 0};
    (void)::poll(&entry, 1, pidfd ? deadline.poll_milliseconds() : poll_period_milliseconds(deadline));
  }
}

int poll_period_milliseconds(Deadline deadline) {
  constexpr int kPeriod = 5;
  const int left = deadline.poll_milliseconds();
  return left < 0 ? kPeriod : std::min(left, kPeriod);
}

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  // "pid (comm) state ppid ... utime stime cutime cstime ... starttime(22nd) ...". comm may hold anything, so the
  // other fields are counted from the last ')'.
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 > text.size())
    return std::nullopt;
  const auto fields = split(text.substr(close + 2), ' ');
  if (fields.size() < 22 || fields[0].empty()) return std::nullopt;
  const auto number = [&](std::size_t field) { return parse_integer(fields[field]).value_or(0); };
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  ProcessStat stat;
  stat.pid = static_cast<pid_t>(parse_integer(trim(text.substr(0, open))).value_or(0));
  stat.name = text.substr(open + 1, close - open - 1);
  stat.state = fields[0][0];
  stat.parent = static_cast<pid_t>(number(1));
  stat.cpu_seconds = tick * static_cast<double>(number(11) + number(12));
  stat.reaped_cpu_seconds = tick * static_cast<double>(number(13) + number(14));
  stat.num_threads = static_cast<int>(number(17));
  stat.start_time = static_cast<std::uint64_t>(number(19));
  stat.resident_bytes = number(21) * ::sysconf(_SC_PAGESIZE);
  return stat;
}

std::optional<ProcessStat> read_process_stat(pid_t pid) {
  const auto text = read_file(process_stat_path(pid));
  return text ? parse_process_stat(*text) : std::nullopt;
}

std::string process_stat_path(pid_t pid) { return "/proc/" + std::to_string(pid) + "/stat"; }

std::vector<pid_t> listed_pids(const std::string& folder) {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), ::closedir);
  while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr) {
    if (const auto pid = parse_integer(entry->d_name)) pids.push_back(static_cast<pid_t>(*pid));
  }
  return pids;
}

}  // namespace ddl
