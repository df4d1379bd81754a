// What the ranks tell each other in CPU memory for a call on memory of GPUs. All of it happens inside the call, and has
// its number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// Of a process set; every function is called by all its ranks. Not thread-safe. Values are plain data.
class CpuExchange {
 public:
  /// Both outlive this.
  CpuExchange(CollectiveBackend& host, Connections& connections) : host_(host), connections_(connections) {}

  /// Whether all ranks make this call, which begins here: DDL_ERROR_MISMATCH on all if not.
  Outcome compare(const Request& request, CallDeadline deadline);
  /// What each rank has; bytes are the same on all.
  Outcome gather(const void* own, void* all, std::size_t bytes, CallDeadline deadline);
  template <class Value>
  tl::expected<std::vector<Value>, Failure> gather(const Value& own, CallDeadline deadline) {
    std::vector<Value> all(static_cast<std::size_t>(connections_.membership().size));
    DDL_TRY(gather(&own, all.data(), sizeof own, deadline));
    return all;
  }
  /// What rank 0 of the set has is then on all ranks.
  template <class Value>
  Outcome broadcast(Value& value, CallDeadline deadline) {
    return broadcast(&value, sizeof value, deadline);
  }
  /// The largest of the ranks' numbers; of this rank's and the peer's, if there is one, whose call it is then.
  tl::expected<std::uint64_t, Failure> largest(std::uint64_t own, CallDeadline deadline, int peer = -1);
  /// The blocks of an alltoallv, whose ranks have compared the call. Stores what this rank receives in
  /// request.recv_counts. DDL_ERROR_MISMATCH on all ranks: some rank has no room for what it is sent.
  tl::expected<BlockMove, Failure> exchange_counts(const Request& request, CallDeadline deadline);

 private:
  Outcome broadcast(void* value, std::size_t bytes, CallDeadline deadline);
  std::uint64_t number() const { return connections_.channel().call().number; }

  CollectiveBackend& host_;
  Connections& connections_;
};

}  // namespace ddl::runtime
