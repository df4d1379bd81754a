// Sessions in an allocation of Slurm.
#pragma once

#include <string>
#include <vector>

#include "e2e/harness/job.h"

namespace ddl::cluster {

/// The settings of a HostJob whose ddlrun is the command of salloc with these options.
e2e::Command in_salloc(const std::vector<std::string>& options);

/// The output of a command of the login under test, outside of any allocation; it must succeed.
std::string output_as_login(const std::vector<std::string>& words);

}  // namespace ddl::cluster
