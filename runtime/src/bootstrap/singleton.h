// A world of one: no launcher, nobody to find.
#pragma once

#include <cstdint>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/settings.h"

namespace ddl::runtime {

/// Not available while the environment says that several processes were started, unless that was overridden.
Result<BootstrapAttempt> attempt_singleton(const Settings& settings, std::uint32_t generation);

}  // namespace ddl::runtime
