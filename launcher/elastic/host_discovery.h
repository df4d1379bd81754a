// Which hosts an elastic job may use: what a script prints, or the nodes of the user's Slurm jobs of a name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/command_output.h"
#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"
#include "launcher/process/watched_command.h"

namespace ddl::launcher {

/// The hosts that a script has printed, one a line as in a hostfile: "node1", "node1:4", "node1 slots=4". There may be
/// none. Pure. script: its name for messages. slots: of a host without any. Error, with the number of the line: it names
/// no host, one that an earlier line names, or one without slots where slots is nullopt.
Result<std::vector<AllocatedNode>> parse_discovered_hosts(std::string_view text, const std::string& script,
                                                          std::optional<int> slots);

/// What has been found.
struct DiscoveredHosts {
  std::vector<AllocatedNode> hosts;
  std::vector<SchedulerJob> jobs;  ///< of hosts that are nodes of a scheduler's other jobs: these
};

/// The nodes of these jobs, each once. slots: of each; nullopt: as many as GPUs. Pure. Error: a node has no GPUs, and slots
/// is nullopt.
Result<DiscoveredHosts> hosts_of_jobs(std::vector<SchedulerJob> jobs, std::optional<int> slots);

/// "extra" of "slurm:extra": the name of the user's Slurm jobs whose nodes are the hosts; nullopt: discovery is the path of
/// a script.
std::optional<std::string> slurm_jobs_of(const std::string& discovery);

/// Asks the script again and again, a second after it has ended; or Slurm, after ten, for its controller has others to
/// answer, too. Lives on the loop's thread.
class HostDiscovery {
 public:
  struct Handlers {
    std::function<void(const DiscoveredHosts&)> on_hosts;  ///< as often as it has run
    /// It cannot be started, exits with an error, runs for more than 10 s, or prints what is no list of hosts, or more
    /// than a megabyte. One sentence.
    std::function<void(const Error&)> on_failure;
  };
  /// Starts with JobSpec::elastic.discovery at once. The destructor kills what runs.
  HostDiscovery(EventLoop& loop, const JobSpec& spec, Handlers handlers);
  HostDiscovery(const HostDiscovery&) = delete;
  HostDiscovery& operator=(const HostDiscovery&) = delete;

 private:
  void start();
  void on_end(const Result<CommandOutput>& output);

  EventLoop& loop_;
  std::string source_;        ///< as of ElasticSpec::discovery
  std::optional<int> slots_;  ///< of hosts that are named without any
  Handlers handlers_;
  std::optional<WatchedCommand> run_;
  EventLoop::Timer timer_;
};

}  // namespace ddl::launcher
