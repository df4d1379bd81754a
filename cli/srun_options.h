// What --launcher srun leaves to srun, and what srun cannot do.
#pragma once

#include <optional>
#include <span>

#include "cli/command_line_error.h"
#include "cli/given_options.h"

namespace ddl::cli {

/// The refusal of the first option that is ddlrun's own doing. Pure.
std::optional<CommandLineError> refuse_beyond_srun(const GivenOptions& given);

}  // namespace ddl::cli
