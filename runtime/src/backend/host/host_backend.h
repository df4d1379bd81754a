// The collectives as libddl itself carries them out: over shared memory, and over sockets between hosts.
#pragma once

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/cluster/cluster.h"
#include "runtime/src/collective/algorithm.h"
#include "runtime/src/context/pairs.h"

namespace ddl::runtime {

class HostBackend final : public CollectiveBackend {
 public:
  /// cluster: null on one host. All outlive this.
  HostBackend(Channel& channel, Cluster* cluster, Pairs& pairs, const AlgorithmOverrides& algorithms)
      : channel_(channel), cluster_(cluster), pairs_(pairs), algorithms_(algorithms) {}

  contract::CpuOperations operations() const override { return contract::CpuOperations::kDdl; }
  Outcome run(const Request& request, CallDeadline deadline) override;

 private:
  Channel& channel_;
  Cluster* cluster_;
  Pairs& pairs_;
  const AlgorithmOverrides& algorithms_;
};

}  // namespace ddl::runtime
