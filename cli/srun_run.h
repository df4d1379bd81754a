// A job whose ranks srun starts, without agents.
#pragma once

#include "cli/console.h"
#include "cli/options.h"
#include "launcher/job/environment.h"

namespace ddl::cli {

/// Asks the nodes what they have, plans, and becomes srun: its exit code and its messages are the job's. Returns only if
/// that was not to be; for kDryRun the line is printed instead, and the nodes are asked only with --probe.
int run_by_srun(const Request& request, const launcher::Environment& environment, const Console& console);

}  // namespace ddl::cli
