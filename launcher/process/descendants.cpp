#include "launcher/process/descendants.h"

#include <dirent.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/pidfd.h"
#include "base/text.h"

namespace ddl::launcher {
namespace {

struct Entry {
  pid_t parent = 0;
  char state = '?';
  std::uint64_t start_time = 0;
};

// /proc/PID/stat: "pid (comm) state ppid ... starttime(22nd) ...". comm may hold anything, so parse after the last ')'.
std::optional<Entry> read_entry(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 8192);
  if (!text) return std::nullopt;
  const std::size_t end_of_name = text->rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 > text->size()) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(end_of_name + 2), ' ');
  if (fields.size() < 20 || fields[0].empty()) return std::nullopt;
  Entry entry;
  entry.state = fields[0][0];
  entry.parent = static_cast<pid_t>(parse_integer(fields[1]).value_or(0));
  entry.start_time = static_cast<std::uint64_t>(parse_integer(fields[19]).value_or(0));
  return entry;
}

std::map<pid_t, Entry> all_processes() {
  std::map<pid_t, Entry> table;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc"), ::closedir);
  if (!directory) return table;
  while (const dirent* name = ::readdir(directory.get())) {
    const auto pid = parse_integer(name->d_name);
    if (!pid) continue;
    if (auto entry = read_entry(static_cast<pid_t>(*pid))) table.emplace(static_cast<pid_t>(*pid), *entry);
  }
  return table;
}

void reap_finished_children() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L); }

std::vector<ProcessId> descendants_of(pid_t root) {
  const auto table = all_processes();
  std::map<pid_t, std::vector<pid_t>> children;
  for (const auto& [pid, entry] : table) children[entry.parent].push_back(pid);

  std::vector<ProcessId> found;
  std::vector<pid_t> pending = children[root];
  std::set<pid_t> seen;  // the table is no snapshot: a recycled pid must not make a loop
  while (!pending.empty()) {
    const pid_t pid = pending.back();
    pending.pop_back();
    if (!seen.insert(pid).second) continue;
    const Entry& entry = table.at(pid);
    if (entry.state != 'Z' && entry.state != 'X') found.push_back({pid, entry.start_time});
    const auto& below = children[pid];
    pending.insert(pending.end(), below.begin(), below.end());
  }
  return found;
}

void signal_process(const ProcessId& process, int signal) {
  const auto pidfd = open_pidfd(process.pid);
  if (!pidfd) return;
  // The descriptor pins the process; what it pins is checked after that.
  const auto entry = read_entry(process.pid);
  if (entry && entry->start_time == process.start_time) (void)send_signal(pidfd->get(), signal);
}

namespace {

// Both kinds of ending look again after every death: what is left may have forked meanwhile.
template <class OnFound>
bool until_none_left(Deadline deadline, OnFound on_found) {
  for (;;) {
    reap_finished_children();
    const auto found = descendants_of(::getpid());
    if (found.empty()) return true;
    UniqueFd first;
    for (const ProcessId& process : found) {
      if (!first) first = open_pidfd(process.pid).value_or(UniqueFd());
      on_found(process);
    }
    if (deadline.has_passed()) return false;
    if (!first) continue;  // all of them ended since they were listed
    pollfd entry{first.get(), POLLIN, 0};
    retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); });
  }
}

}  // namespace

bool wait_for_descendants(Deadline deadline) {
  return until_none_left(deadline, [](const ProcessId&) {});
}

int kill_descendants(Deadline deadline) {
  std::set<std::pair<pid_t, std::uint64_t>> killed;
  until_none_left(deadline, [&](const ProcessId& process) {
    signal_process(process, SIGKILL);
    killed.insert({process.pid, process.start_time});
  });
  return static_cast<int>(killed.size());
}

}  // namespace ddl::launcher
