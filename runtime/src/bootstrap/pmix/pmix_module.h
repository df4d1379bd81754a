// The PMIx bootstrap, loaded when a launcher promises a PMIx server.
#pragma once

#include <cstdint>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/settings.h"

namespace ddl::runtime {

/// Not available without a promise in the environment (then nothing is loaded), or without the module or libpmix. Where the
/// server does not answer that is an error, because it may have answered other ranks.
Result<BootstrapAttempt> attempt_pmix(const Settings& settings, std::uint32_t generation);

}  // namespace ddl::runtime
