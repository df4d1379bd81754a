// ddlrun --slurm and what goes with it.
#pragma once

#include "cli/console.h"
#include "cli/options.h"
#include "launcher/job/environment.h"

namespace ddl::cli {

/// Writes the job script of a request for kScript where it is to go, or hands it to sbatch. Returns ddlrun's exit code.
int write_script(const Request& request, const launcher::Environment& environment, const Console& console);

/// What the rules say of a script that a person wrote. Returns 1 if one of its errors was found.
int lint_script_file(const Request& request, const launcher::Environment& environment,
                     const Console& console);
}  // namespace ddl::cli
