// What --dry-run prints, for a person and as one line of JSON: what would be started where, and which
// environment variables the ranks would have that ddlrun itself has not.
#pragma once

#include <string>
#include <vector>

#include "launcher/job/job_spec.h"
#include "launcher/plan/launch_plan.h"

namespace ddl::cli {

/// How the environment of ranks differs from the one that ddlrun was started in.
struct EnvironmentChange {
  Environment set;                   ///< the same for every rank: added, or with another value
  std::vector<std::string> removed;  ///< no rank has it; ascending
  std::vector<Environment> own;  ///< what differs between ranks; in the order of the plan's nodes and ranks
};

/// Pure.
EnvironmentChange environment_change(const launcher::LaunchPlan& plan, const Environment& head_environment);

/// What would be started where. Of the ranks' environment only the difference to head_environment is printed. Pure.
std::string plan_text(const launcher::DryPlan& plan, const launcher::JobSpec& job,
                      const Environment& head_environment);

/// The same as one line of JSON, with its newline; what is unknown until launch is null. docs/reference/ddlrun.md has the
/// schema. Pure.
std::string plan_json(const launcher::DryPlan& plan, const launcher::JobSpec& job,
                      const Environment& head_environment);

}  // namespace ddl::cli
