#include "cluster/harness/host_processes.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <map>
#include <optional>

#include "base/process.h"
#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

std::string proc_path(pid_t pid, const std::string& name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

// The namespace that identifies a host; "" if there is no such process, or only its zombie.
std::string namespace_of(pid_t pid) {
  std::array<char, 64> target{};
  const ssize_t length = ::readlink(proc_path(pid, "ns/uts").c_str(), target.data(), target.size());
  return length <= 0 ? "" : std::string(target.data(), static_cast<std::size_t>(length));
}

std::vector<std::string> everywhere() {
  std::vector<std::string> names = Cluster::hosts();
  for (const char* more : {"inner", "head"}) names.emplace_back(more);
  return names;
}

std::map<std::string, std::string> hosts_by_namespace() {
  std::map<std::string, std::string> hosts;
  for (const std::string& host : everywhere()) {
    const pid_t first = Cluster::first_process(host);
    if (first != 0) hosts[namespace_of(first)] = host;
  }
  return hosts;
}

std::optional<HostProcess> look_at(pid_t pid) {
  const auto stat = read_process_stat(pid);
  if (!stat || !stat->is_alive()) return std::nullopt;
  HostProcess process;
  process.pid = pid;
  // Since OpenSSH 9.8, connections have programs of their own, such as sshd-session.
  process.name = stat->name.starts_with("sshd-") ? "sshd" : stat->name;
  process.state = stat->state;
  process.start_time = stat->start_time;
  process.command = read_file(proc_path(pid, "cmdline")).value_or("");
  for (char& byte : process.command) {
    if (byte == '\0') byte = ' ';
  }
  return process;
}

// Names in the temporary folders of every host, without those of the tests themselves.
std::set<std::string> files_of_all_hosts() {
  std::set<std::string> files;
  for (const std::string& host : everywhere()) {
    if (Cluster::first_process(host) == 0) continue;
    for (const std::string folder : {"/tmp", "/dev/shm", "/run"}) {
      if (host == "head" && folder == "/run") continue;
      for (const std::string& name : e2e::names_in(Cluster::path_on(host, folder))) {
        if (name.starts_with("ddl-e2e-")) continue;
        files.insert(host + ":" + folder + "/" + name);
      }
    }
  }
  return files;
}

}  // namespace

std::vector<HostProcess> processes_of_all_hosts() {
  const auto hosts = hosts_by_namespace();
  std::vector<HostProcess> processes;
  for (const pid_t pid : listed_pids()) {
    auto process = look_at(pid);
    if (!process) continue;
    const auto host = hosts.find(namespace_of(process->pid));
    process->host = host == hosts.end() ? "?" : host->second;
    processes.push_back(std::move(*process));
  }
  return processes;
}

std::string describe(const std::vector<HostProcess>& processes) {
  std::vector<std::string> words;
  for (const HostProcess& process : processes) {
    words.push_back(process.host + ": " + std::to_string(process.pid) + " " + process.name + " " +
                    process.state + " (" + process.command.substr(0, 200) + ")");
  }
  return join(words, "; ");
}

Before::Before() : files_(files_of_all_hosts()) {
  for (const HostProcess& process : processes_of_all_hosts()) processes_.insert(process);
}

std::vector<HostProcess> Before::new_processes() const {
  return new_processes([](const HostProcess&) { return true; });
}

std::vector<HostProcess> Before::new_processes(const std::function<bool(const HostProcess&)>& holds) const {
  std::vector<HostProcess> found;
  for (const HostProcess& process : processes_of_all_hosts()) {
    if (processes_.contains(process) || !holds(process)) continue;
    if (process.is_sshd() && without_sshd_.contains(process.host)) continue;
    if (process.pid == Cluster::first_process(process.host)) continue;  // of a host that was restarted
    found.push_back(process);
  }
  return found;
}

std::vector<HostProcess> Before::wait_until_nothing_left(Deadline deadline) const {
  return wait_until_none_left([](const HostProcess&) { return true; }, deadline);
}

std::vector<HostProcess> Before::wait_until_none_left(const std::function<bool(const HostProcess&)>& holds,
                                                      Deadline deadline) const {
  for (;;) {
    auto left = new_processes(holds);
    if (left.empty() || deadline.has_passed()) return left;
    // All of them must end, so it suffices to wait for any one before the next check.
    const auto pidfd = open_pidfd(left.front().pid);
    if (!pidfd) continue;
    pollfd entry{pidfd->get(), POLLIN, 0};
    retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); });
  }
}

void Before::require_nothing_left() const {
  const auto left = wait_until_nothing_left(Deadline::after(e2e::kTestTimeout));
  REQUIRE(describe(left) == "");
  std::vector<std::string> new_files;
  for (const std::string& file : files_of_all_hosts()) {
    if (!files_.contains(file)) new_files.push_back(file);
  }
  REQUIRE(join(new_files, " ") == "");
}

}  // namespace ddl::cluster
