// The bootstrap over the MPI that is to carry out the collectives: for launchers that only that MPI understands, such as
// the srun of a site with Cray MPICH, and because a launcher's PMI connection takes one client, which MPI is then.
#pragma once

#include <cstdint>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/settings.h"

namespace ddl::runtime {

/// Not available unless DDL_CPU_OPERATIONS is mpi, or where MPI cannot be had or knows nobody else although others were
/// started. Initialises MPI unless the program has. Collective over the job.
Result<BootstrapAttempt> attempt_mpi(const Settings& settings, std::uint32_t generation);

}  // namespace ddl::runtime
