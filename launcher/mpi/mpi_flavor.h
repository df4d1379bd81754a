// Which kind of mpirun there is: they differ in the words for everything.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace ddl::launcher {

enum class MpiFlavor {
  kOpenMpi4,  ///< Open MPI up to 4.1, whose mpirun is ORTE's
  kPrrte,     ///< Open MPI 5 and prterun
  kHydra,     ///< MPICH, Intel MPI and others of its family
};

struct MpiLauncher {
  MpiFlavor flavor = MpiFlavor::kOpenMpi4;
  std::string name;  ///< "Open MPI 4.1.4", for a person
};

/// Of what "mpirun --version" prints. Error: none of those. Pure.
Result<MpiLauncher> mpi_launcher_of(std::string_view version_text);

}  // namespace ddl::launcher
