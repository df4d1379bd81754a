#include "runtime/src/backend/cpu_backend.h"

#include <algorithm>

#include "runtime/src/collective/host_collectives.h"

namespace ddl::runtime {

CpuBackend::CpuBackend(Connections& connections, const AlgorithmOverrides& algorithms)
    : connections_(connections), algorithms_(algorithms) {
  if (connections.layout().host_count() > 1) cluster_.emplace(connections);
}

Outcome CpuBackend::run(const Request& request, CallDeadline deadline) {
  if (request.peer >= 0) return transfer(request, deadline);
  const Algorithm algorithm = algorithms_.of(request.call.kind);
  if (algorithm != request.call.algorithm) {
    Request named = request;
    named.call.algorithm = algorithm;
    return run(named, deadline);
  }
  if (cluster_) return cluster_->run(request, deadline);
  Outcome outcome = run_on_one_host(connections_.channel(), request, deadline);
  if (outcome) remember(request);
  return outcome;
}

void CpuBackend::remember(const Request& request) {
  if (request.call.count > SmallCall::kMostBytes) return;
  const auto is_known = [&](const SmallCall& small) { return small.call() == request.call; };
  if (std::any_of(small_.begin(), small_.end(), is_known)) return;
  const auto small = SmallCall::of(request, connections_.channel());
  if (!small) return;
  if (small_.size() < kRemembered) return small_.push_back(*small);
  small_[oldest_] = *small;
  oldest_ = (oldest_ + 1) % kRemembered;
}

Outcome CpuBackend::transfer(Request request, CallDeadline deadline) {
  request.call.root = connections_.job_ranks()[request.call.root];
  auto found = pairs_.find(request.peer);
  if (found == pairs_.end()) {
    DDL_ASSIGN(pair, connections_.connect_pair(request.peer, request.call, deadline));
    found = pairs_.emplace(request.peer, std::make_unique<CpuBackend>(*pair, algorithms_)).first;
  }
  CpuBackend& pair = *found->second;
  request.peer = -1;
  request.job_ranks = pair.connections_.job_ranks();
  // The time for connecting does not count: the transfer has the full timeout.
  Outcome outcome = pair.run(request, CallDeadline::after(deadline.seconds));
  if (!outcome) pair.connections_.report_abort();
  return outcome;
}

}  // namespace ddl::runtime
