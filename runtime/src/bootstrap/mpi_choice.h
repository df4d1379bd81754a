// Which MPI executes the collectives of this process: the one that it has loaded, or else one for which libddl has a
// module. A process never gets two: their functions have the same names, and MPI 5.0, 20.2.1, forbids it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "runtime/src/common/settings.h"

namespace ddl::runtime {

/// An MPI that this process has loaded.
struct LoadedMpi {
  std::string soname;  ///< "libmpi.so.12"
  std::string file;    ///< "/opt/mpich/lib/libmpi.so.12"
};

/// A module of libddl for an MPI. MPICH has two, because Debian gives its library another soname.
struct MpiModule {
  std::string name;     ///< of its folder, and in DDL_MPI: "abi", "mpich", "openmpi"
  std::string file;     ///< "/opt/ddl/lib/ddl/mpich/libddl_mpi.so"
  std::string library;  ///< the soname of the MPI that it links; "": it is no module, as the loader will say
};

/// The files libddl_mpi*.so in the folders of this one, by name.
std::vector<MpiModule> mpi_modules(const std::string& directory);

/// The MPIs that this process has loaded, in whatever way: by the sonames that are known here or to the modules, or
/// else by MPI's functions.
std::vector<LoadedMpi> loaded_mpis(const std::vector<MpiModule>& modules);

/// The modules to try, in this order: those for the MPI that is loaded; if none is, those that DDL_MPI names, or all,
/// beginning with the one that fits the launcher. wanted: DDL_MPI, may be empty. Pure.
/// kInvalidArgument: the process has two MPIs, or would get two; the message names both files. kUnavailable: there is
/// no module for the one that is loaded.
Result<std::vector<MpiModule>> choose_mpi(const std::vector<LoadedMpi>& loaded,
                                          const std::vector<MpiModule>& modules, std::string_view wanted,
                                          bool pmix_promised);

/// Loads the library of this soname from a Python environment, where the loader does not look: the one whose python
/// this process executes, or the one that is active; before it the libfabric beside it, which Intel MPI needs, with
/// FI_PROVIDER_PATH unless it is set. True if it has been loaded.
bool load_from_python_environment(const std::string& soname, const Settings& settings);

}  // namespace ddl::runtime
