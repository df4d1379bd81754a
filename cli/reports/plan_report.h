// What --dry-run prints, as text and as one line of JSON: which rank would start on which node, and the environment
// variables of the ranks that ddlrun itself does not have.
#pragma once

#include <string>
#include <vector>

#include "launcher/job/job_spec.h"
#include "launcher/plan/launch_plan.h"

namespace ddl::cli {

/// The difference between the environment of the ranks and the one of ddlrun.
struct EnvironmentChange {
  Environment set;                   ///< the same for every rank: added, or with another value
  std::vector<std::string> removed;  ///< no rank has it; ascending
  std::vector<Environment> own;  ///< what differs between ranks; in the order of the plan's nodes and ranks
};

/// Pure.
EnvironmentChange environment_change(const launcher::LaunchPlan& plan, const Environment& head_environment);

/// The plan as text. Of the ranks' environment only the difference to head_environment is printed; defaults: those
/// variables of it of which the origin is printed, too. Pure.
std::string plan_text(const launcher::DryPlan& plan, const launcher::JobSpec& job,
                      const Environment& head_environment,
                      const std::vector<launcher::DefaultVariable>& defaults = {});

/// The plan as one line of JSON, with its newline; a value that is unknown until launch is null.
/// docs/reference/ddlrun.md has the schema. Pure.
std::string plan_json(const launcher::DryPlan& plan, const launcher::JobSpec& job,
                      const Environment& head_environment,
                      const std::vector<launcher::DefaultVariable>& defaults = {});

/// "ranks also get A=1 (--network-interfaces), B=2, C=3 (site lumi-g)". Pure.
std::string defaults_sentence(const std::vector<launcher::DefaultVariable>& defaults);

}  // namespace ddl::cli
