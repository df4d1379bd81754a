// On-demand modules, which link libraries that not every machine has: where they lie and how they are loaded.
// libddl_pmix.so is loaded when a launcher promises PMIx; one of several libddl_mpi.so is chosen by the MPI of the
// program or of the launcher.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "runtime/src/bootstrap/mpi_world.h"
#include "runtime/src/common/settings.h"

namespace ddl::runtime {

// On-demand modules: parts of libddl that link libraries that not every machine has.

/// Where modules lie: DDL_MODULE_DIR, or the folder "ddl" beside libddl.so; no slash at the end.
std::string module_directory(const Settings& settings);

/// The symbol of the module, which is loaded and never closed, because vendors' libraries register thread-local
/// destructors and exit handlers. kNotFound with the loader's message.
Result<void*> load_symbol(const std::string& file, const char* symbol);

// Finds the module for the MPI that this process has, or can load, and joins its world.

/// The process's MPI: the one that the program has loaded, the one that DDL_MPI names, or the first of those that
/// libddl was built with, beginning with the one that fits the job's launcher. Collective over the job. kUnavailable:
/// there is none. identity: this process's in the job, if that is known; otherwise MPI decides.
Result<std::unique_ptr<MpiWorld>> join_mpi(const Settings& settings,
                                           const std::optional<MpiIdentity>& identity);

}  // namespace ddl::runtime
