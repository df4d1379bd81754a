// The collectives as libddl itself carries them out: over shared memory, and over sockets between hosts.
#pragma once

#include <functional>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/collective/cluster.h"

namespace ddl::runtime {

class HostBackend final : public CollectiveBackend {
 public:
  /// What carries out a transfer between two ranks of the set.
  using Transfer = std::function<Outcome(const Request& request, CallDeadline deadline)>;

  /// cluster: null on one host. All outlive this.
  HostBackend(Channel& channel, Cluster* cluster, Transfer transfer, const AlgorithmOverrides& algorithms)
      : channel_(channel), cluster_(cluster), transfer_(std::move(transfer)), algorithms_(algorithms) {}

  contract::CpuOperations operations() const override { return contract::CpuOperations::kDdl; }
  Outcome run(const Request& request, CallDeadline deadline) override;

 private:
  Channel& channel_;
  Cluster* cluster_;
  Transfer transfer_;
  const AlgorithmOverrides& algorithms_;
};

}  // namespace ddl::runtime
