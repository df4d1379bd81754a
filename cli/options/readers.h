// The steps from given options to a Request: one function for each group of options. Each refuses invalid values.
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

/// No node has more GPUs.
inline constexpr int kMaxGpus = 1024;

/// All but BindingPolicy::oversubscribe.
void read_binding(ValueReader& values, affinity::BindingPolicy& policy);

/// request.binding_view and the job's policy, for --show-bind and --explain-bind.
tl::expected<Request, CommandLineError> read_binding_view(Request request, const GivenOptions& given);

/// The refusal of the first option that needs ddlrun's agents, which --launcher srun does not start. Pure.
std::optional<CommandLineError> refuse_beyond_srun(const GivenOptions& given);

/// Fills the job and the allocation of a request whose action is set, and reads the hostfile if one was given.
/// Error: the first invalid value, options that contradict each other, or one that is missing.
tl::expected<Request, CommandLineError> read_job(Request request, const GivenOptions& given,
                                                 std::vector<std::string> command,
                                                 const CommandLineContext& context);

/// Fills request.script of a request whose job has been read from the same options. Pure. Error: an invalid value, or
/// an option that cannot be used in a job script.
tl::expected<Request, CommandLineError> read_script(Request request, const GivenOptions& given);

/// The same for --lint, --list-sites and --show-site.
tl::expected<Request, CommandLineError> read_script_view(Request request, const GivenOptions& given);

/// The refusal of the first option on the command line that belongs to --slurm. A configuration file may contain
/// them.
std::optional<CommandLineError> refuse_script_options(const GivenOptions& given);

}  // namespace ddl::cli
