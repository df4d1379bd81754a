// The launch plan that the agents receive: what to start, where, and how. The dry plan of --dry-run is the same
// plan before the agents have answered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/node_binding.h"
#include "launcher/plan/node_facts.h"
#include "launcher/plan/placement.h"
#include "launcher/plan/rank_environment.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::launcher {

/// What all nodes of a job share. It is encoded once, and agents forward it as it is.
struct JobLaunch {
  std::string job_id;  ///< unique among jobs of this host: "ddlrun-<head pid>-<random>"
  std::string
      elastic_job_id;  ///< of the elastic job that consists of this one and others; "": it is no part of one
  int num_ranks = 0;
  std::vector<std::string> node_names;       ///< of all nodes
  std::vector<std::vector<int>> node_ranks;  ///< ranks of each node
  std::vector<std::string> command;
  std::string workdir;
  ShellAttributes shell;
  Environment environment;  ///< of all ranks
  /// Variables that describe the login (HOME, USER, ...): a node's ranks get the node's own instead of the head's.
  std::vector<std::string> login_variables;
  Seconds kill_grace_seconds = 5;
  /// How long a rank may wait before its agent sends message::Stalled; 0: always.
  Seconds stall_warning_seconds;
  Seconds stall_shutdown_seconds;  ///< the agent sends it then, too; 0: no such time
  /// Of each rank, of which a timeline is recorded from the start; 0: none is.
  std::int64_t timeline_events = 0;
  bool strict_bind = false;       ///< a rank that cannot be bound as planned is not started
  bool report_bindings = false;   ///< agents send message::RankBound for every rank
  bool measures_use = false;      ///< agents say how the GPUs and the cores of ranks are used
  bool split_lines = true;        ///< false: output is forwarded as raw bytes as it arrives
  bool flush_idle_lines = false;  ///< for a terminal: send unfinished lines (prompts) after a moment
  std::string preemption_watch;   ///< of sh: ends with 0 when a host is about to be taken away; "": none
  std::string scheduler_job;      ///< that whose CPUs the ranks use; "": none
  Requeue requeue;                ///< what the agent does if the head's host is lost
  std::string head_host;          ///< the host of the head
  std::int64_t head_pid = 0;      ///< the process of the head on that host
  bool serves_gloo = false;       ///< agents serve the head's rendezvous store for Horovod's Gloo
  int output_window = 0;          ///< bytes of one rank's stream that may be in flight to the head
  bool operator==(const JobLaunch&) const = default;
};

/// How one rank is started.
struct RankLaunch {
  int rank = 0;
  int local_rank = 0;
  bool reads_stdin = false;
  Environment environment;  ///< on top of its node's; PMIx's own variables are added by the agent
  CpuSet cpus{};            ///< the CPUs that it may run on; empty: all CPUs that its agent may run on
  std::vector<int> memory_nodes{};  ///< the NUMA nodes whose memory it prefers; empty: any
  std::vector<int> gpus{};          ///< its own, as their vendor's library counts them
  bool operator==(const RankLaunch&) const = default;
};

/// A node's part of the plan.
struct NodeLaunch {
  int node_index = 0;             ///< in JobLaunch::node_names
  int incarnation = 0;            ///< of these ranks: how many times they have been started before
  Environment environment;        ///< of all ranks of the node, on top of JobLaunch::environment
  std::vector<RankLaunch> ranks;  ///< those of this node, ascending
  std::vector<int> server_ports;  ///< those of NodeFacts::held_ports at which ranks expect servers of ranks
  bool operator==(const NodeLaunch&) const = default;
};

/// The variables of a rank, but for those of its login and of PMIx, which its agent adds.
Environment environment_of(const JobLaunch& job, const NodeLaunch& node, const RankLaunch& rank);

struct LaunchPlan {
  JobLaunch job;
  std::vector<NodeLaunch> nodes;
};

/// What is known of a job's nodes when its launch is planned. It only refers to the values.
struct PlacedJob {
  const Placement& placement;
  const std::vector<NodeFacts>& facts;  ///< of placement.nodes[i]
  const std::string& job_id;
  const std::vector<NodeBinding>& bindings;  ///< of placement.nodes[i]; empty: nothing is bound
  const Scheduler& scheduler;                ///< ranks get the variables that its step would set
};

/// facts: of placement.nodes[i]. Error: --as-horovod, and a node has no package horovod; names it. Pure.
Status check_horovod(const JobSpec& spec, const Placement& placement, const std::vector<NodeFacts>& facts);

/// Pure. Ranks inherit head_environment.
LaunchPlan make_launch_plan(const JobSpec& spec, const PlacedJob& placed,
                            const Environment& head_environment);

/// The launch plan as far as it is known before the job's agents have answered.
struct DryPlan {
  LaunchPlan launch;
  std::vector<NodeBinding> bindings;      ///< of launch.nodes[i]; without ranks if the node was not asked
  std::vector<std::optional<int>> slots;  ///< of launch.nodes[i]; nullopt: unknown until launch
  int assumed_slots = 0;  ///< the number assumed for nodes whose slots are unknown: the slots of this machine
  std::string hosts_from;  ///< Allocation::origin
  /// For so many nodes the ranks that --map-by ppr gives them were counted by the objects of this machine.
  int unknown_objects = 0;
  bool asked_all = false;  ///< the facts of all nodes are known
};

/// Pure. known[i]: the facts of allocation.nodes[i], if it was asked. here: the facts of this machine; its number
/// of slots is assumed for nodes whose slots are unknown, and its objects for nodes whose topology is. Error: as
/// mapped_rank_limits(), place(), check_horovod() and bind_nodes().
Result<DryPlan> make_dry_plan(const JobSpec& spec, const Allocation& allocation,
                              const std::vector<std::optional<NodeFacts>>& known, const NodeFacts& here,
                              const Environment& head_environment);

}  // namespace ddl::launcher
