// The bootstraps (of elastic jobs, PMIx, MPI, PMI-1, singleton), in the order in which they are tried. Each has a source of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/common/settings.h"

namespace ddl::runtime {

// The bootstrap of elastic jobs, over the connection of PMI-1.

/// Not available unless DDL_ELASTIC is 1. Waits until the launcher has planned a generation with this process, which gives
/// the membership its number.
Result<BootstrapAttempt> attempt_elastic(const Settings& settings, std::uint32_t generation);

// The PMIx bootstrap, loaded when a launcher promises a PMIx server.

/// Not available without a promise in the environment (then nothing is loaded), or without the module or libpmix. If
/// the server does not answer, that is an error, because it may have answered other ranks.
Result<BootstrapAttempt> attempt_pmix(const Settings& settings, std::uint32_t generation);

// The bootstrap over the MPI that is to execute the collectives: for launchers that only this MPI understands, such
// as the srun of a site with Cray MPICH, and because a launcher's PMI connection takes one client, which is then MPI.

/// Not available unless DDL_CPU_OPERATIONS is mpi, or if no MPI can be loaded, or if MPI has one rank although
/// several processes were started. Initialises MPI unless the program has. Collective over the job.
Result<BootstrapAttempt> attempt_mpi(const Settings& settings, std::uint32_t generation);

// The PMI-1 bootstrap: under MPICH's hydra, and under Slurm's srun --mpi=pmi2, which also speaks PMI-1.

/// Not available without PMI_FD, or if no launcher answers there.
Result<BootstrapAttempt> attempt_pmi(const Settings& settings, std::uint32_t generation);

// A world of one: no launcher and no other ranks.

/// Not available while the environment says that several processes were started, unless that was overridden.
Result<BootstrapAttempt> attempt_singleton(const Settings& settings, std::uint32_t generation);

// The bootstraps, in the order in which they are tried.

/// One way to find the other ranks. attempt() returns an error only if the way exists and failed. Then no other is
/// tried, because the ranks could take different ways.
struct BootstrapBackend {
  const char* name;
  Result<BootstrapAttempt> (*attempt)(const Settings& settings, std::uint32_t generation);
};

/// That of elastic jobs, PMIx, then the MPI that executes the collectives, then PMI-1, then singleton.
std::span<const BootstrapBackend> bootstrap_list();

/// Tries the backends in order and returns the first that is available; the error gives the reason of each.
Result<std::unique_ptr<Bootstrap>> join_job(std::span<const BootstrapBackend> backends,
                                            const Settings& settings, std::uint32_t generation);

}  // namespace ddl::runtime
