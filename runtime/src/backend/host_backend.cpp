#include "runtime/src/backend/host_backend.h"

#include "runtime/src/collective/host_collectives.h"

namespace ddl::runtime {

Outcome HostBackend::run(const Request& request, CallDeadline deadline) {
  if (request.peer >= 0) return transfer_(request, deadline);
  Request named = request;
  named.call.algorithm = static_cast<std::uint8_t>(algorithms_.of(request.call.kind));
  return cluster_ != nullptr ? cluster_->run(named, deadline) : run_on_one_host(channel_, named, deadline);
}

}  // namespace ddl::runtime
