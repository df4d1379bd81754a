// Sessions in an allocation of Slurm's.
#pragma once

#include <string>
#include <vector>

#include "e2e/harness/job.h"

namespace ddl::cluster {

/// ddlrun as the command of salloc with these options: HostJob's settings.
e2e::Command in_salloc(const std::vector<std::string>& options);

/// What a command of the login under test prints, outside of any allocation; it must succeed.
std::string said_by(const std::vector<std::string>& words);

}  // namespace ddl::cluster
