// Job scripts handed to Slurm.
#pragma once

#include <string>

#include "cli/console.h"

namespace ddl::cli {

/// Submits a script and prints the job's number, or {"job": N}. Returns ddlrun's exit code.
int submit(const std::string& script, bool as_json, const Console& console);
/// Has Slurm say when and where it would run, without submitting it. Returns ddlrun's exit code.
int test_submission(const std::string& script, const Console& console);

}  // namespace ddl::cli
