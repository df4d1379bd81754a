// What is checked of a job before anything is started: its directories and files, and options that
// have no effect.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/request.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

// The directories of a job, looked at before anything is started.

/// The working directory must exist and be one that can be entered: 127 or 126 otherwise, as a shell has it for a
/// command. Not looked at if no node of the allocation is this machine, hostname: the others' agents will say.
std::optional<CommandLineError> check_workdir(const launcher::JobSpec& job,
                                              const launcher::Allocation& allocation,
                                              const std::string& hostname);

/// The key for ssh, if the job names one, must be readable: ssh would only mention that, and then fail to log in.
std::optional<CommandLineError> check_identity_file(const launcher::JobSpec& job);

/// Creates the output directory with its parents, if the job has one, and refuses one that cannot be written to.
std::optional<CommandLineError> create_output_directory(const launcher::JobSpec& job);

// What a user should know before the job runs, though it will run.

/// One sentence each: what of the command line has no effect. Pure.
std::vector<std::string> start_notes(const launcher::JobSpec& job, const Environment& environment);

}  // namespace ddl::cli
