// --check-build on every host of a job.
#pragma once

#include "cli/console.h"
#include "cli/options.h"
#include "launcher/job/environment.h"

namespace ddl::cli {

/// Starts ddlrun --check-build on each host of the request, as it would start a rank, and prints what they have in common and
/// where they differ. Returns ddlrun's exit code. For a process with one thread.
int check_on_hosts(const Request& request, const launcher::Environment& environment, const Console& console);

}  // namespace ddl::cli
