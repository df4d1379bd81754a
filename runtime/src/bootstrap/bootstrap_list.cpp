#include "runtime/src/bootstrap/bootstrap_list.h"

#include <array>

namespace ddl::runtime {

std::span<const BootstrapBackend> bootstrap_list() {
  static constexpr std::array kBackends = {
      BootstrapBackend{"elastic", attempt_elastic},
      BootstrapBackend{"pmix", attempt_pmix},
      BootstrapBackend{"mpi", attempt_mpi},
      BootstrapBackend{"pmi", attempt_pmi},
      BootstrapBackend{"singleton", attempt_singleton},
  };
  return kBackends;
}

Result<std::unique_ptr<Bootstrap>> join_job(std::span<const BootstrapBackend> backends,
                                            const Settings& settings, std::uint32_t generation) {
  std::string reasons;
  for (const BootstrapBackend& backend : backends) {
    auto attempt = backend.attempt(settings, generation);
    if (!attempt) return fail(std::move(attempt.error().during(std::string("bootstrap ") + backend.name)));
    if (attempt->bootstrap) return std::move(attempt->bootstrap);
    reasons += std::string(reasons.empty() ? "" : "; ") + backend.name + ": " + attempt->not_available;
  }
  return fail(ErrorCode::kNotFound, "no bootstrap is available (" + reasons + ")");
}

}  // namespace ddl::runtime
