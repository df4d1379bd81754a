// What the process was given when it was started.
#pragma once

#include <string>

#include "base/error.h"
#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

/// Opens /dev/null for whichever of standard input, output and error is closed, so that no file or socket of ours takes
/// its number and is written to as if it were the terminal.
void open_closed_standard_fds();

/// environ(7).
launcher::Environment process_environment();

/// CPUs that this process may run on; at least 1.
int allowed_cpus();

/// Where the user keeps own profiles of sites: ~/.config/ddlrun/sites, or below $XDG_CONFIG_HOME; "" without a home.
std::string own_sites_folder(const launcher::Environment& environment);

/// Absolute; an error where the directory has been removed.
Result<std::string> current_directory();

}  // namespace ddl::cli
