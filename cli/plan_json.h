// What --dry-run --json prints. docs/reference/ddlrun.md has the schema.
#pragma once

#include <string>

#include "launcher/job/job_spec.h"
#include "launcher/plan/dry_plan.h"

namespace ddl::cli {

/// plan_text() as one line of JSON, with its newline; what is unknown until launch is null. Pure.
std::string plan_json(const launcher::DryPlan& plan, const launcher::JobSpec& job,
                      const launcher::Environment& head_environment);

}  // namespace ddl::cli
