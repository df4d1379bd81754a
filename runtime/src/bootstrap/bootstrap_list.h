// The bootstraps, in the order in which they are tried.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/settings.h"

namespace ddl::runtime {

/// One way to find the other ranks. attempt() returns an error only if the way exists and failed; then no other is
/// tried, because the ranks could part.
struct BootstrapBackend {
  const char* name;
  Result<BootstrapAttempt> (*attempt)(const Settings& settings, std::uint32_t generation);
};

/// PMIx, then the MPI that carries out the collectives, then PMI-1, then singleton.
std::span<const BootstrapBackend> bootstrap_list();

/// Tries the backends in order and returns the first that is available; the error names why each was not.
Result<std::unique_ptr<Bootstrap>> join_job(std::span<const BootstrapBackend> backends,
                                            const Settings& settings, std::uint32_t generation);

}  // namespace ddl::runtime
