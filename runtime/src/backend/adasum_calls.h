// Allreduces by Adasum (DDL_ADASUM), composed of calls of the backend below:
//
//   1. the ranks compare the call;
//   2. an alltoall gives each rank its slice of the tensors of all ranks, in memory of its own;
//   3. for each level of the tree, each rank computes the dots of its slices of all pairs, a small allreduce adds those of
//      all ranks, and each combines its slices;
//   4. an allgather gives all ranks the slices of the result.
//
// So each element is sent and received as often as in an allreduce, and computed by one rank: all ranks have the same
// bits. A tensor is cut alike whether it is alone in the call or not: its result has the same bits, too.
// docs/decisions/0076.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/backend/cpu_exchange.h"
#include "runtime/src/collective/adasum.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// Of a process set. Not thread-safe: one call at a time.
class AdasumCalls {
 public:
  /// Both outlive this.
  AdasumCalls(CollectiveBackend& host, Connections& connections)
      : host_(host), connections_(connections), exchange_(host, connections) {}

  /// The arguments have been checked, and all ranks give data. Returns when the result is in the buffers.
  Outcome run(const Request& request, CallDeadline deadline);

 private:
  Outcome run_compared(const Request& request, CallDeadline deadline);
  /// Tensors of a GPU, through CPU memory.
  Outcome run_on_gpu(const Request& request, std::span<const Part> tensors, CallDeadline deadline);
  /// Tensors in CPU memory.
  Outcome combine(const Request& request, std::span<const Part> tensors, CallDeadline deadline);
  /// Combines the slices of all ranks, of which rank 0's become the result.
  Outcome combine_slices(ddl_dtype dtype, std::byte* values, CallDeadline deadline);
  /// A call of the backend below, as a part of the program's.
  Outcome step(const Call& call, const void* send, void* recv, CallDeadline deadline);

  int ranks() const { return connections_.membership().size; }

  CollectiveBackend& host_;
  Connections& connections_;
  CpuExchange exchange_;
  Call call_;                          ///< the program's
  std::vector<std::uint64_t> slices_;  ///< elements of each tensor's slices
  std::uint64_t block_ = 0;            ///< their sum: what a rank sends to each
  // Kept for the next call.
  std::vector<std::byte> row_;       ///< the blocks for all ranks, unless they lie in the only tensor
  std::vector<std::byte> gathered_;  ///< the blocks of all ranks for this one
  std::vector<std::byte> wide_;      ///< the same as floats
  std::vector<std::byte> staged_;    ///< the tensors of a GPU
  std::vector<AdasumDots> dots_;
};

}  // namespace ddl::runtime
