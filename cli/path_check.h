// The directories of a job, looked at before anything is started.
#pragma once

#include <optional>

#include "cli/options.h"
#include "launcher/job/job_spec.h"

namespace ddl::cli {

/// The working directory must exist and be one that can be entered: 127 or 126 otherwise, as a shell has it for a
/// command. Not looked at if no node of the allocation is this machine, hostname: the others' agents will say.
std::optional<CommandLineError> check_workdir(const launcher::JobSpec& job,
                                              const launcher::Allocation& allocation,
                                              const std::string& hostname);

/// The key for ssh, if the job names one, must be readable: ssh would only mention that, and then fail to log in.
std::optional<CommandLineError> check_identity_file(const launcher::JobSpec& job);

/// Creates the output directory with its parents, if the job has one, and refuses one that cannot be written to.
std::optional<CommandLineError> create_output_directory(const launcher::JobSpec& job);

}  // namespace ddl::cli
