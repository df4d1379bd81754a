// What libddl and its on-demand modules libddl_mpi.so agree on. There is one for each MPI that was found when libddl was
// built, in a folder of that MPI's name; only they link an MPI.
#pragma once

#include <cstdint>

#include "contract/version.h"
#include "runtime/src/backend/mpi/mpi_world.h"

namespace ddl::runtime {

/// Both sides are C++ of one build: a module of another version or layout is refused by this number and the version.
inline constexpr std::uint32_t kMpiInterface = 2;
inline constexpr char kMpiModuleFile[] = "libddl_mpi.so";
inline constexpr char kMpiFactorySymbol[] = "ddl_mpi_world_create";

/// A rank of a job.
struct MpiRankPlace {
  int rank = 0;
  int size = 1;
};

/// Initialises MPI unless the program has, and stores its world, or the error, in *result. place: as the job's bootstrap
/// says, with which MPI's size must agree; null: as MPI has it. Returns 1; 0 without storing anything if the module was built
/// for another interface or version of libddl. Collective over the job.
using MpiFactory = int (*)(std::uint32_t interface, const char* version, const MpiRankPlace* place,
                           Result<std::unique_ptr<MpiWorld>>* result);

}  // namespace ddl::runtime
