// From options as text to a job.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "cli/given_options.h"
#include "cli/options.h"

namespace ddl::cli {

/// Fills the job and the allocation of a request whose action is set, and asks for its file if a hostfile was given.
/// Error: the first value that cannot be meant, options that contradict each other, or one that is missing.
tl::expected<Request, CommandLineError> read_job(Request request, const GivenOptions& given,
                                                 std::vector<std::string> command,
                                                 const CommandLineContext& context);

}  // namespace ddl::cli
