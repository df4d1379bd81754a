// What libddl and its on-demand module libddl_pmix.so agree on. Only the module links libpmix, so that libddl.so runs
// where there is none.
#pragma once

#include <cstdint>

#include "contract/version.h"
#include "runtime/src/bootstrap/bootstrap.h"

namespace ddl::runtime {

/// Both sides are C++ of one build: a module of another version or layout is refused by this number and the version.
inline constexpr std::uint32_t kBootstrapInterface = 3;
inline constexpr char kPmixModuleFile[] = "libddl_pmix.so";
inline constexpr char kPmixFactorySymbol[] = "ddl_pmix_bootstrap_create";

/// Stores the connection, the reason why there is none, or the error in *result and returns 1; returns 0 and stores
/// nothing if the module was built for another interface or version of libddl. deadline: of waiting for the server.
using PmixFactory = int (*)(std::uint32_t interface, const char* version, std::uint32_t generation,
                            Deadline deadline, Result<BootstrapAttempt>* result);

}  // namespace ddl::runtime
