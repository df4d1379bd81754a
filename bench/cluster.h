// A cluster of hosts on this machine (tests/cluster/cluster), for the benchmarks across hosts.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/process_tree.h"
#include "bench/contender.h"

namespace ddl::bench {

/// Whether this process runs on the head of a cluster already.
bool is_on_cluster_head();

/// Starts a cluster with this number of hosts, optionally with Slurm on them, runs a command on its head, with this
/// process's own streams, and ends the cluster.
/// trees: folders that all hosts see under their own paths, besides the repository.
/// Returns the command's exit status. If no cluster can be started, it returns the script's exit status: 77, after
/// the script has printed the reason (or 1, if the environment says that a cluster is required).
Result<int> run_on_new_cluster(int hosts, bool with_slurm, const std::vector<std::string>& trees,
                               const std::vector<std::string>& command);

/// On a cluster's head: limits what a host sends over its first network to this rate, "1gbit" as tc(8) writes it; ""
/// removes the limit.
Status set_rate(const std::string& host, const std::string& rate);

/// The hosts of the cluster on whose head this process runs, seen from there; for one thread.
class ClusterHosts {
 public:
  /// On the head it has the first count hosts, or all if there are fewer. On any other machine it has the names node1
  /// to nodeCOUNT and no processes, which is enough to list commands.
  explicit ClusterHosts(int count);

  const std::vector<std::string>& names() const { return names_; }

  /// Seconds of CPU of the hosts' first processes and of everything below them that has ended, in the resolution of
  /// the kernel's clock tick.
  double cpu_seconds() const;

  /// Waits until no process runs on the hosts except those that ran at construction. A process that still runs after
  /// two seconds is killed, and is an error that names its program.
  Status wait_until_idle() const;

 private:
  std::vector<ProcessId> below_daemons() const;
  std::vector<ProcessId> new_processes() const;

  std::vector<std::string> names_;
  std::vector<pid_t> daemons_;  // the hosts' first processes
  std::vector<ProcessId> preexisting_;
};

}  // namespace ddl::bench
