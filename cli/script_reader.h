// From options as text to a job script.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "cli/given_options.h"
#include "cli/options.h"

namespace ddl::cli {

/// Fills request.script of a request whose job has been read from the same options. Pure. Error: a value that cannot be
/// meant, or an option that has no place in a job script.
tl::expected<Request, CommandLineError> read_script(Request request, const GivenOptions& given);

/// The same for --lint, --list-sites and --show-site.
tl::expected<Request, CommandLineError> read_script_view(Request request, const GivenOptions& given);

/// The refusal of the first option on the command line that belongs to --slurm; a configuration file may have them for later.
std::optional<CommandLineError> refuse_script_options(const GivenOptions& given);

}  // namespace ddl::cli
