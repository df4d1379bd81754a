// What ddlrun prints about itself for people, from the table of options: --help and --version. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::cli {

/// The page of a topic of --help, at most 100 columns wide. "": how ddlrun is used, in 25 lines; "all": every topic;
/// "markdown": every topic, unwrapped, for the manual page ddlrun(1). Error: an unknown topic; it lists the known ones.
Result<std::string> help_text(std::string_view topic = {});
/// "ranks", ..., "all", "markdown".
std::vector<std::string> help_topics();
/// "ddlrun 0.2.0\n"
std::string version_text();

}  // namespace ddl::cli
