// What would be started where, as far as it is known before any agent has answered.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

/// Stands in a dry plan for the value of a variable that only an agent can tell.
inline constexpr std::string_view kUnknownUntilLaunch = "(unknown until launch)";

struct DryPlan {
  LaunchPlan launch;
  std::vector<std::optional<int>> slots;  ///< of launch.nodes[i]; nullopt: unknown until launch
  int assumed_slots = 0;   ///< what the ranks of those were dealt by: as many as this machine has
  std::string hosts_from;  ///< Allocation::origin
};

/// Pure. here: the facts of this machine; other hosts are asked nothing. Error: as place().
Result<DryPlan> make_dry_plan(const JobSpec& spec, const Allocation& allocation, const NodeFacts& here,
                              const Environment& head_environment);

}  // namespace ddl::launcher
