#include "bench/cluster.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/command.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "bench/process_table.h"

namespace ddl::bench {
namespace {

// Where the cluster script keeps its state; the folder exists on the head only.
constexpr const char* kStateFolder = "/run/ddl-cluster";
constexpr auto kGrace = std::chrono::seconds(2);

// Runs a command with this process's own streams and environment, and returns its exit status.
Result<int> run_command(std::vector<std::string> words) {
  DDL_ASSIGN(child, Child::start({.argv = std::move(words), .group = Command::Group::kOfParent}));
  child.wait(Deadline::never());
  return child.exit_code();
}

// The command line of the cluster script, for the cluster whose state is in this folder.
std::vector<std::string> script(const TemporaryFolder& state, std::initializer_list<std::string> words) {
  std::vector<std::string> all{DDL_BENCH_CLUSTER_SCRIPT, "--state", state.path()};
  all.insert(all.end(), words);
  return all;
}

// The pid of a host's first process. The script's file holds "PID NAMESPACE".
pid_t first_process(const std::string& host) {
  const auto identity = read_file(fmt::format("{}/pid/{}", kStateFolder, host));
  return identity ? static_cast<pid_t>(parse_integer(split(*identity, ' ')[0]).value_or(0)) : 0;
}

}  // namespace

bool is_on_cluster_head() { return ::access(kStateFolder, F_OK) == 0; }

Result<int> run_on_new_cluster(int hosts, bool with_slurm, const std::vector<std::string>& trees,
                               const std::vector<std::string>& command) {
  DDL_ASSIGN(state, TemporaryFolder::make_in(tmp_directory(), "ddl-bench-cluster"));
  auto up = script(state, {"up", std::to_string(hosts), "--with-parent"});
  if (with_slurm) up.emplace_back("--slurm");
  for (const std::string& tree : trees) up.insert(up.end(), {"--tree", tree});
  auto started = run_command(std::move(up));
  if (!started || *started != 0) return started;
  auto exec = script(state, {"exec", "head"});
  exec.insert(exec.end(), command.begin(), command.end());
  auto result = run_command(std::move(exec));
  DDL_TRY(run_command(script(state, {"down"})));
  return result;
}

Status set_rate(const std::string& host, const std::string& rate) {
  DDL_ASSIGN(exit_status,
             run_command({DDL_BENCH_CLUSTER_SCRIPT, "rate", host, rate.empty() ? "--undo" : rate}));
  if (exit_status == 0) return {};
  return fail(ErrorCode::kSystem, fmt::format("{} cannot be given a rate of \"{}\"", host, rate));
}

ClusterHosts::ClusterHosts(int count) {
  if (!is_on_cluster_head()) {
    for (int i = 1; i <= count; ++i) names_.push_back(fmt::format("node{}", i));
    return;
  }
  const auto list = read_file(std::string(kStateFolder) + "/hosts");
  const std::string text = list ? *list : std::string();
  for (const std::string_view name : split(text, '\n')) {
    if (name.empty() || std::ssize(names_) == count) continue;
    names_.emplace_back(name);
    daemons_.push_back(first_process(names_.back()));
  }
  preexisting_ = below_daemons();
}

double ClusterHosts::cpu_seconds() const {
  double seconds = 0;
  for (const pid_t daemon : daemons_) seconds += cpu_seconds_with_reaped(daemon);
  return seconds;
}

std::vector<ProcessId> ClusterHosts::below_daemons() const {
  std::vector<ProcessId> found;
  for (const pid_t daemon : daemons_) {
    const auto below = descendants_of(daemon);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

std::vector<ProcessId> ClusterHosts::new_processes() const {
  std::vector<ProcessId> found = below_daemons();
  std::erase_if(found, [&](const ProcessId& process) {
    return std::find(preexisting_.begin(), preexisting_.end(), process) != preexisting_.end();
  });
  return found;
}

Status ClusterHosts::wait_until_idle() const {
  const Deadline deadline = Deadline::after(kGrace);
  std::vector<ProcessId> running = new_processes();
  while (!running.empty() && !deadline.has_passed()) {
    wait_until_one_ends(running, deadline);
    running = new_processes();
  }
  if (running.empty()) return {};
  std::vector<std::string> programs;
  for (const ProcessId& process : running) {
    programs.push_back(program_of(process.pid));
    signal_process(process, SIGKILL);
  }
  return fail(Error(ErrorCode::kSystem, "left running on the hosts: " + join(programs, ", ")));
}

}  // namespace ddl::bench
