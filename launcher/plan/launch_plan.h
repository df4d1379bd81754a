// Everything that the agents are told: what to start, where, and how. The dry plan is the same before the agents have
// answered, as --dry-run prints it.
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

namespace ddl::launcher {

// Everything that the agents are told: what to start, where, and how. What --dry-run prints.

struct RankLaunch {
  int rank = 0;
  int local_rank = 0;
  bool reads_stdin = false;
  Environment
      environment;  ///< on top of NodeLaunch::common_environment; PMIx's own variables are added by the agent
  CpuSet cpus{};    ///< that it may run on; empty: on all that its agent may
  std::vector<int> memory_nodes{};  ///< NUMA nodes that it prefers memory of; empty: any
  bool operator==(const RankLaunch&) const = default;
};

/// What one agent is told.
struct NodeLaunch {
  std::string job_id;  ///< unique among jobs of this host: "ddlrun-<head pid>-<random>"
  int size = 0;        ///< ranks of the whole job
  int node_index = 0;
  std::vector<std::string> node_names;       ///< of the whole job
  std::vector<std::vector<int>> node_ranks;  ///< ranks of each node
  std::vector<std::string> command;
  std::string workdir;
  Environment common_environment;
  /// Variables that describe the login (HOME, USER, ...): a node's ranks get the node's own instead of the head's.
  std::vector<std::string> login_variables;
  std::vector<RankLaunch> ranks;  ///< those of this node, ascending
  Seconds kill_grace_seconds = 5;
  bool strict_binding = false;    ///< a rank that cannot be bound as told is not started
  bool reports_bindings = false;  ///< message::RankBound of every rank
  bool split_lines = true;        ///< false: output is passed on in raw pieces as it comes
  bool flush_idle_lines = false;  ///< a person is watching: show unfinished lines (prompts) after a moment
  std::string slurm_job;          ///< that ranks are started in, whose CPUs they share; "": none
  std::string head_host;          ///< where the ddlrun runs that starts them
  std::int64_t head_pid = 0;      ///< and its process there
  int output_window = 0;          ///< bytes of one rank's stream that may be under way to the head
  bool operator==(const NodeLaunch&) const = default;
};

struct LaunchPlan {
  std::vector<NodeLaunch> nodes;
};

/// Pure. facts[i] and bindings[i] belong to placement.nodes[i]; without bindings nothing is bound. head_environment is what
/// ranks inherit. in_slurm: the nodes are a Slurm job's, and ranks find what srun would have told them.
LaunchPlan make_launch_plan(const JobSpec& spec, const Placement& placement,
                            const std::vector<NodeFacts>& facts, const Environment& head_environment,
                            const std::string& job_id, const std::vector<NodeBinding>& bindings = {},
                            bool in_slurm = false);

// What would be started where, as far as it is known before the job's agents have answered.

/// Stands in a dry plan for the value of a variable that only an agent can tell.
inline constexpr std::string_view kUnknownUntilLaunch = "(unknown until launch)";

struct DryPlan {
  LaunchPlan launch;
  std::vector<NodeBinding> bindings;      ///< of launch.nodes; of a node that was not asked without ranks
  std::vector<std::optional<int>> slots;  ///< of launch.nodes[i]; nullopt: unknown until launch
  int assumed_slots = 0;   ///< what the ranks of those were dealt by: as many as this machine has
  std::string hosts_from;  ///< Allocation::origin
  bool asked_all = false;  ///< every node has said what it has
};

/// Pure. known[i]: what allocation.nodes[i] has said of itself, if it was asked; here: the facts of this machine, which slots
/// of the others are guessed by. Error: as place() and bind_nodes().
Result<DryPlan> make_dry_plan(const JobSpec& spec, const Allocation& allocation,
                              const std::vector<std::optional<NodeFacts>>& known, const NodeFacts& here,
                              const Environment& head_environment);

}  // namespace ddl::launcher
