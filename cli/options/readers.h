// The steps from given options to a Request: one function for each group of options. Each refuses what
// cannot be meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "affinity/plan/binding_plan.h"
#include "cli/options/given_options.h"
#include "cli/options/option_values.h"
#include "cli/options/request.h"

namespace ddl::cli {

/// More GPUs no node has.
inline constexpr int kMaxGpus = 1024;

// The options of binding: text in, a policy or a refusal out.

/// All but BindingPolicy::oversubscribe.
void read_binding(ValueReader& values, affinity::BindingPolicy& policy);

/// request.binding_view and the job's policy, for --show-bind and --explain-bind.
tl::expected<Request, CommandLineError> read_binding_view(Request request, const GivenOptions& given);

// What --launcher mpirun takes beside a job's options, and what it leaves to mpirun.

/// How the user has asked for it: "--mpi" or "--launcher mpirun".
std::string mpirun_choice(const GivenOptions& given);

/// Reads them; what mpirun cannot do is refused, with what to do instead. Pure.
MpiTask read_mpi_task(const GivenOptions& given, ValueReader& values);

// What --launcher srun leaves to srun, and what srun cannot do.

/// The refusal of the first option that is ddlrun's own doing. Pure.
std::optional<CommandLineError> refuse_beyond_srun(const GivenOptions& given);

// From options as text to a job.

/// Fills the job and the allocation of a request whose action is set, and asks for its file if a hostfile was given.
/// Error: the first value that cannot be meant, options that contradict each other, or one that is missing.
tl::expected<Request, CommandLineError> read_job(Request request, const GivenOptions& given,
                                                 std::vector<std::string> command,
                                                 const CommandLineContext& context);

// From options as text to a job script.

/// Fills request.script of a request whose job has been read from the same options. Pure. Error: a value that cannot be
/// meant, or an option that has no place in a job script.
tl::expected<Request, CommandLineError> read_script(Request request, const GivenOptions& given);

/// The same for --lint, --list-sites and --show-site.
tl::expected<Request, CommandLineError> read_script_view(Request request, const GivenOptions& given);

/// The refusal of the first option on the command line that belongs to --slurm; a configuration file may have them for later.
std::optional<CommandLineError> refuse_script_options(const GivenOptions& given);

}  // namespace ddl::cli
