// What a user should know before the job runs, though it will run.
#pragma once

#include <string>
#include <vector>

#include "launcher/job/job_spec.h"
#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

/// One sentence each: what of the command line has no effect. Pure.
std::vector<std::string> start_notes(const launcher::JobSpec& job, const launcher::Environment& environment);

}  // namespace ddl::cli
