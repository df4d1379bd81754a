// The directories of a job, looked at before anything is started.
#pragma once

#include <optional>

#include "cli/options.h"
#include "launcher/job/job_spec.h"

namespace ddl::cli {

/// The working directory must exist and be one that can be entered: 127 or 126 otherwise, as a shell has it for a command.
std::optional<CommandLineError> check_workdir(const launcher::JobSpec& job);

/// Creates the output directory with its parents, if the job has one, and refuses one that cannot be written to.
std::optional<CommandLineError> create_output_directory(const launcher::JobSpec& job);

}  // namespace ddl::cli
