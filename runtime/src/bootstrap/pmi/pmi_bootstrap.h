// The PMI-1 bootstrap: under MPICH's hydra and under Slurm's srun --mpi=pmi2, which speaks it, too.
#pragma once

#include <cstdint>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/settings.h"

namespace ddl::runtime {

/// Not available without PMI_FD, or where nobody answers there.
Result<BootstrapAttempt> attempt_pmi(const Settings& settings, std::uint32_t generation);

}  // namespace ddl::runtime
