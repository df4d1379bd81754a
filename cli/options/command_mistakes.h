// What stands in the place of the command by mistake: a piece of an option's value, or a number of ranks.
#pragma once

#include <string>
#include <vector>

#include "cli/options/given_options.h"

namespace ddl::cli {

/// Refuses a command that is a piece of an option's value, as in "-H node1 node2" and "-x A = 1". "--" says that the
/// command is meant. Pure.
Status refuse_command(const SplitArgv& split, const GivenOptions& given);

/// Refuses "-np 4" among the words of the command, of a command line without a number of ranks. Pure.
Status refuse_rank_count_behind(const std::vector<std::string>& command);

/// Why a command line without a number of ranks is refused, and what to type for its command. cpus: that ddlrun may
/// use here, for a suggestion. Pure.
Status missing_rank_count(const std::vector<std::string>& command, int cpus);

}  // namespace ddl::cli
