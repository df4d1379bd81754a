// How the tests start the examples: alone, or on several ranks through ddlrun.
#pragma once

#include <string>
#include <vector>

#include "examples/program.h"

namespace ddl::test {

using Arguments = std::vector<std::string>;

/// The command line of an example on size ranks; size 0 starts it without a launcher, as a world of one.
/// Its output comes as it was written, without tags.
Arguments command_line(const std::string& example, int size, const Arguments& arguments);

/// Runs it to its end.
Outcome run_example(const std::string& example, int size, const Arguments& arguments);

}  // namespace ddl::test
