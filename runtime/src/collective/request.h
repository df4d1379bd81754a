// One collective as one rank asks for it, and the checks of its arguments, which are made before another rank hears of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/src/collective/reduce_kernel.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/failure.h"

namespace ddl::runtime {

// One collective as one rank asks for it: what everybody must ask for alike, and this rank's own buffers.

/// The buffers stay the caller's. See ddl.h for what each collective reads and writes; arguments have been checked
/// (collective/request.h).
struct Request {
  Call call;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::size_t element_size = 1;  ///< bytes of an element of send and recv
  /// Of reduce_scatter and allgatherv: everybody's. Of alltoallv: what this rank sends to each.
  std::span<const std::uint64_t> counts;
  /// Of alltoallv: how many elements recv has room for, and where to say how many came from each.
  std::uint64_t recv_capacity = 0;
  std::uint64_t* recv_counts = nullptr;
  /// Of a transfer: the other rank, as the process set counts; -1 once it is a call of the pair, whose root is the sender's
  /// rank in the job.
  int peer = -1;
  /// Who the process set's ranks are in the job, for sentences.
  std::span<const int> job_ranks;

  ddl_dtype dtype() const { return call.dtype; }
  Reduction reduction() const { return {call.dtype, call.op, call.prescale, call.postscale}; }
};

// The checks of a call's arguments, made before anybody else hears of the call.

/// Everything about a request that one rank can see alone: type and operation exist and go together, root is a rank,
/// pointers that are used are there and aligned, sizes fit into memory, buffers overlap only where the collective works in
/// place, and scales are numbers. rank and size are those of the process set. counts has size entries, or is null.
Outcome check_request(const Request& request, int rank, int size);

}  // namespace ddl::runtime
