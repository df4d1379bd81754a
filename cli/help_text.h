// What --help and --version print.
#pragma once

#include <string>

namespace ddl::cli {

/// Usage, the options by group, what exit codes mean, and examples. At most 100 columns wide. Pure.
std::string help_text();
/// "ddlrun 0.1.0\n"
std::string version_text();

}  // namespace ddl::cli
