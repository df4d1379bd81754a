// Sessions in an allocation of Slurm.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "e2e/harness/job.h"

namespace ddl::cluster {

/// The settings of a HostJob whose ddlrun is the command of salloc with these options.
e2e::Command in_salloc(const std::vector<std::string>& options);

/// The output of a command of the login under test, outside of any allocation; it must succeed within kTestTimeout and
/// patience.
std::string output_as_login(const std::vector<std::string>& words,
                            std::chrono::seconds patience = std::chrono::seconds(0));

}  // namespace ddl::cluster
