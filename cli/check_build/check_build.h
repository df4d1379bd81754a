// ddlrun --check-build, on this machine or on every host of a job.
#pragma once

#include "base/environment.h"
#include "cli/options/request.h"
#include "cli/reports/console.h"

namespace ddl::cli {

/// Looks into every box, or one, on this machine or, where the request has hosts, on each of them, and prints what was found.
/// Returns ddlrun's exit code: of one box, 0 where it can be used and 1 where it cannot. For a process with one thread.
int check_build(const Request& request, const Environment& environment, const Console& console);

}  // namespace ddl::cli
