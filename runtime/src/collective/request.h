// One collective as one rank requests it, and the checks of its arguments, which precede any communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/src/collective/reduce_kernel.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/failure.h"

namespace ddl::runtime {

/// One collective as one rank requests it: the call, which must be the same on all ranks, and this rank's own
/// buffers.
///
/// The caller owns the buffers. See ddl.h for what each collective reads and writes. Arguments have been checked by
/// check_request().
struct Request {
  Call call;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::size_t element_size = 1;  ///< bytes of an element of send and recv
  /// For reduce_scatter and allgatherv: the counts of all ranks. For alltoallv: the counts that this rank sends to
  /// each.
  std::span<const std::uint64_t> counts;
  /// For alltoallv: the elements that recv has space for, and where to store the number that came from each rank.
  std::uint64_t recv_capacity = 0;
  std::uint64_t* recv_counts = nullptr;
  /// For a transfer: the other rank, in the process set; -1 once it is a call of the pair, whose root is the sender's
  /// rank in the job.
  int peer = -1;
  /// The rank in the job of each rank of the process set, for messages.
  std::span<const int> job_ranks;

  ddl_dtype dtype() const { return call.dtype; }
  Reduction reduction() const { return {call.dtype, call.op, call.prescale, call.postscale}; }
};

/// Checks everything about a request that one rank can check alone, before any communication: the operation applies
/// to the type, root is a rank, used pointers are not null and are aligned, sizes fit into memory, buffers overlap
/// only as in-place calls allow, and scales are finite and not 0. rank and size are those of the process set. counts
/// has size entries, or is null.
Outcome check_request(const Request& request, int rank, int size);

}  // namespace ddl::runtime
