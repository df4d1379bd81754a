// Finds the module for the MPI that this process has, or can have, and joins it.
#pragma once

#include <memory>
#include <optional>

#include "runtime/src/backend/mpi/module_interface.h"
#include "runtime/src/settings.h"

namespace ddl::runtime {

/// The process's MPI: the one that the program has loaded, the one that DDL_MPI names, or the first that libddl was built
/// with and that speaks what the job's launcher does. Collective over the job. kUnavailable: there is none.
/// place: in the job, if that is known; otherwise MPI says.
Result<std::unique_ptr<MpiWorld>> join_mpi(const Settings& settings,
                                           const std::optional<MpiRankPlace>& place);

}  // namespace ddl::runtime
