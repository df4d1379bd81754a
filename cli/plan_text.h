// What --dry-run prints: what would be started where, for a person.
#pragma once

#include <string>

#include "launcher/job/job_spec.h"
#include "launcher/plan/dry_plan.h"

namespace ddl::cli {

/// Of the ranks' environment only the difference to head_environment is shown: the rest is nobody's business. Pure.
std::string plan_text(const launcher::DryPlan& plan, const launcher::JobSpec& job,
                      const launcher::Environment& head_environment);

}  // namespace ddl::cli
