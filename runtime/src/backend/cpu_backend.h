// libddl's own backend: shared memory within a host, and sockets between hosts.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/collective/cluster.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

class CpuBackend final : public CollectiveBackend {
 public:
  /// All outlive this. The ranks are on one host or on several.
  CpuBackend(Connections& connections, const AlgorithmOverrides& algorithms);

  contract::CpuOperations operations() const override { return contract::CpuOperations::kDdl; }
  Status allows_call() const override { return {}; }
  bool allows_own_threads() const override { return true; }
  std::unique_ptr<CollectiveBackend> make_duplicate(Connections& duplicate) override {
    return std::make_unique<CpuBackend>(duplicate, algorithms_);
  }
  Outcome run(const Request& request, CallDeadline deadline) override;
  const SmallCall* repeated_by(const Call& call, const std::uint64_t* counts, const void* send,
                               const void* recv) const override {
    for (const SmallCall& small : small_) {
      if (small.is_repeated_by(call, counts, send, recv)) return &small;
    }
    return nullptr;
  }
  std::uint64_t next_number() const override { return connections_.channel().call().number + 1; }
  Path last_path() const override { return connections_.channel().path(); }
  Outcome end() override { return {}; }

 private:
  /// A transfer is a call of the pair of ranks, which is connected at the first one.
  Outcome transfer(Request request, CallDeadline deadline);
  void remember(const Request& request);

  /// Small calls that are the same in each step of most programs.
  static constexpr std::size_t kRemembered = 8;

  Connections& connections_;
  const AlgorithmOverrides& algorithms_;
  std::vector<SmallCall> small_;                      ///< the last kRemembered that can be repeated
  std::size_t oldest_ = 0;                            ///< of small_, once it has so many
  std::optional<Cluster> cluster_;                    ///< of several hosts
  std::map<int, std::unique_ptr<CpuBackend>> pairs_;  ///< by the other rank of the set
};

}  // namespace ddl::runtime
