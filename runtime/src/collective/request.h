// One collective as one rank asks for it: what everybody must ask for alike, and this rank's own buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/src/channel/call.h"
#include "runtime/src/collective/reduce_kernel.h"

namespace ddl::runtime {

/// The buffers stay the caller's. See ddl.h for what each collective reads and writes; arguments have been checked
/// (api/validate.h).
struct Request {
  Call call;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
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

}  // namespace ddl::runtime
