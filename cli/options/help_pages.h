// What ddlrun prints about itself for people, from the table of options: --help, --manual and --version. Pure.
#pragma once

#include <string>

namespace ddl::cli {

/// Usage, the options by group, the exit codes, and examples. At most 100 columns wide.
std::string help_text();
/// ddlrun(1), in the macros man(7): the same, for man.
std::string manual_page();
/// "ddlrun 0.2.0\n"
std::string version_text();

}  // namespace ddl::cli
