// A cluster of hosts on this machine (tests/cluster/cluster), as benchmarks across hosts need one.
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

/// Starts a cluster of so many hosts, where asked for with Slurm on them, runs a command on its head, with this process's own streams, and ends the cluster.
/// trees: folders that all hosts see under their own paths, besides the repository.
/// Returns the command's exit status. Where there can be no cluster it is the script's own, 77, after the reason has been
/// printed (or 1, if the environment says that a cluster is required).
Result<int> run_on_new_cluster(int hosts, bool with_slurm, const std::vector<std::string>& trees,
                               const std::vector<std::string>& command);

/// On a cluster's head: lets a host send at most rate over its first network, "1gbit" as tc(8) writes it; "": as fast as
/// the machine is.
Status set_rate(const std::string& host, const std::string& rate);

/// The hosts of the cluster on whose head this process runs, seen from there; for one thread.
class ClusterHosts {
 public:
  /// Off a cluster's head it has as many names as are asked for, and no processes: for lists of commands.
  /// On the head it has the first count hosts, or all if there are fewer.
  explicit ClusterHosts(int count);

  const std::vector<std::string>& names() const { return names_; }

  /// Seconds of CPU of everything that has run on the hosts and ended, in the resolution of the kernel's clock tick.
  double cpu_seconds() const;

  /// Waits until nothing runs there but what ran at construction. What still runs after two seconds is killed, and is an
  /// error that names it.
  Status wait_until_idle() const;

 private:
  std::vector<ProcessId> below_daemons() const;
  std::vector<ProcessId> strangers() const;

  std::vector<std::string> names_;
  std::vector<pid_t> daemons_;  // the hosts' first processes
  std::vector<ProcessId> known_;
};

}  // namespace ddl::bench
