#include "e2e/harness/processes.h"

#include <poll.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/process.h"
#include "base/text.h"

namespace ddl::e2e {
namespace {

std::string proc_file(pid_t pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

bool was_started_with(pid_t pid, const std::string& entry) {
  const auto environment = read_file(proc_file(pid, "environ"), std::size_t{4} << 20);
  if (!environment) return false;
  for (const auto one : split(*environment, '\0')) {
    if (one == entry) return true;
  }
  return false;
}

// Descriptors of the processes, so that a reused pid is never mistaken for one of them.
std::vector<UniqueFd> pidfds_of(const std::vector<Process>& processes) {
  std::vector<UniqueFd> pidfds;
  for (const Process& process : processes) {
    if (auto pidfd = open_pidfd(process.pid)) pidfds.push_back(std::move(*pidfd));
  }
  return pidfds;
}

}  // namespace

std::vector<Process> processes_with(const std::string& environment_entry) {
  std::vector<Process> found;
  for (const pid_t pid : listed_pids()) {
    if (!was_started_with(pid, environment_entry)) continue;
    const auto process = read_process_stat(pid);
    if (process && process->is_alive()) found.push_back(*process);
  }
  return found;
}

bool wait_until_gone(const std::string& environment_entry, Deadline deadline) {
  for (;;) {
    const auto left = processes_with(environment_entry);
    if (left.empty()) return true;
    // All of them must end, so it suffices to wait for any one before the next check.
    const auto pidfds = pidfds_of(left);
    if (!pidfds.empty()) {
      pollfd entry{pidfds.front().get(), POLLIN, 0};
      retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); });
    }
    if (deadline.has_passed()) return processes_with(environment_entry).empty();
  }
}

bool wait_for_end_of(pid_t pid, Deadline deadline) {
  const auto pidfd = open_pidfd(pid);
  if (!pidfd) return true;
  pollfd entry{pidfd->get(), POLLIN, 0};
  return retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) > 0;
}

void kill_processes_with(const std::string& environment_entry, Deadline deadline) {
  for (;;) {
    const auto left = processes_with(environment_entry);
    if (left.empty() || deadline.has_passed()) return;
    const auto pidfds = pidfds_of(left);
    for (const UniqueFd& pidfd : pidfds) (void)send_signal(pidfd.get(), SIGKILL);
    for (const UniqueFd& pidfd : pidfds) {
      pollfd entry{pidfd.get(), POLLIN, 0};
      retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); });
    }
  }
}

std::optional<pid_t> child_named(pid_t parent, const std::string& name) {
  for (const pid_t pid : listed_pids()) {
    const auto process = read_process_stat(pid);
    if (process && process->parent == parent && process->name == name) return pid;
  }
  return std::nullopt;
}

std::optional<std::int64_t> peak_memory_of(pid_t pid) {
  const auto text = read_file(proc_file(pid, "status"));
  if (!text) return std::nullopt;
  for (const auto line : split(*text, '\n')) {
    if (!line.starts_with("VmHWM:")) continue;
    const auto kib = parse_integer(trim(line.substr(6, line.size() - 6 - 3)));  // "VmHWM:\t  1234 kB"
    if (kib) return *kib * 1024;
  }
  return std::nullopt;
}

std::int64_t sleeps_of(pid_t pid) {
  constexpr std::string_view kName = "voluntary_ctxt_switches:";
  std::int64_t sleeps = 0;
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator(proc_file(pid, "task"), gone)) {
    const auto status = read_file(thread.path().native() + "/status");
    if (!status) continue;
    for (const std::string_view line : split(*status, '\n')) {
      if (line.starts_with(kName)) sleeps += parse_integer(trim(line.substr(kName.size()))).value_or(0);
    }
  }
  return sleeps;
}

std::string describe(const std::vector<Process>& processes) {
  std::vector<std::string> words;
  for (const Process& process : processes) {
    std::string word = "pid " + std::to_string(process.pid) + " " + process.name + " " + process.state;
    // What shows a process that hangs: the CPU time that it has used, and where its threads sleep in the kernel.
    char seconds[32] = {};
    std::snprintf(seconds, sizeof seconds, " %.2f s", process.cpu_seconds);
    word += seconds;
    std::error_code ignored;
    for (const auto& thread : std::filesystem::directory_iterator(proc_file(process.pid, "task"), ignored)) {
      if (const auto place = read_file(thread.path() / "wchan", 256)) word += " " + *place;
    }
    words.push_back(word);
  }
  return join(words, ", ");
}

}  // namespace ddl::e2e
