// How the environment of ranks differs from the one that ddlrun was started in.
#pragma once

#include <string>
#include <vector>

#include "launcher/plan/launch_plan.h"

namespace ddl::cli {

struct EnvironmentChange {
  launcher::Environment set;         ///< the same for every rank: added, or with another value
  std::vector<std::string> removed;  ///< no rank has it; ascending
  std::vector<launcher::Environment>
      own;  ///< what differs between ranks; in the order of the plan's nodes and ranks
};

/// Pure.
EnvironmentChange environment_change(const launcher::LaunchPlan& plan,
                                     const launcher::Environment& head_environment);

}  // namespace ddl::cli
