// On-demand modules, which link what not every machine has: where they lie and how they are loaded. libddl_pmix.so is loaded
// when a launcher promises PMIx; one libddl_mpi.so of several is taken by the MPI of the program or of the launcher.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "runtime/src/bootstrap/mpi_world.h"
#include "runtime/src/common/settings.h"

namespace ddl::runtime {

// On-demand modules: parts of libddl that link what not every machine has.

/// Where modules lie: DDL_MODULE_DIR, or the folder "ddl" beside libddl.so; no slash at the end.
std::string module_directory(const Settings& settings);

/// The symbol of the module, which is loaded and never closed: vendors' libraries leave thread-local destructors and exit
/// handlers behind. kNotFound with the loader's words.
Result<void*> load_symbol(const std::string& file, const char* symbol);

// Finds the module for the MPI that this process has, or can have, and joins it.

/// The process's MPI: the one that the program has loaded, the one that DDL_MPI names, or the first that libddl was built
/// with and that speaks what the job's launcher does. Collective over the job. kUnavailable: there is none.
/// place: in the job, if that is known; otherwise MPI says.
Result<std::unique_ptr<MpiWorld>> join_mpi(const Settings& settings,
                                           const std::optional<MpiIdentity>& identity);

}  // namespace ddl::runtime
