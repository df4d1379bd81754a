// What would be started where, as far as it is known before the job's agents have answered.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/node_binding.h"
#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

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
