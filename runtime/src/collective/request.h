// One collective as one rank requests it, and the checks of its arguments, which precede any communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/src/collective/reduce_kernel.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// One of the tensors of an allreduce of several. send and recv may be the same. A part may be empty.
struct Part {
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::uint64_t count = 0;  ///< elements
};

/// One collective as one rank requests it: the call, which must be the same on all ranks, and this rank's own
/// buffers.
///
/// The caller owns the buffers. See ddl.h for what each collective reads and writes. Arguments have been checked by
/// check_request(); those of a call with parts or with ranks that give no data have been checked as if each part were
/// a call and each rank gave data.
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
  /// Only the calls are compared; nothing moves.
  bool only_compares = false;
  /// The root of a broadcast returns when the ranks have compared their calls, not before.
  bool waits_for_all = false;
  /// The rank in the job of each rank of the process set, for messages.
  std::span<const int> job_ranks;
  /// For an allreduce of several tensors as one: their buffers, one after the other; then send and recv are null and
  /// call.count is the sum of the counts. Either all ranks that give data have parts, of the same counts, or none of
  /// them has.
  std::span<const Part> parts;
  /// For allreduce and reduce_scatter: whether each rank of the process set contributes data; empty: all do. The same
  /// on all ranks, and at least one contributes. A rank that contributes none has neither buffers nor parts that are
  /// accessed, and takes no result; an average is divided by the number of those that give.
  std::span<const std::uint8_t> contributes;

  // If call.memory is on a GPU.

  /// Some rank takes part without memory of a GPU, because it has joined. The same on all ranks.
  bool some_contribute_none = false;

  /// The GPU of this rank's buffers; null if it has none.
  Device* device = nullptr;
  /// The result lies on the host, although the GPU is there: it had no room.
  bool recv_is_on_cpu = false;
  /// The program's stream, as the call's options name it.
  StreamHandle stream = nullptr;
  /// Instead of the stream: the buffers may be used after these events, and the call returns when the result is there.
  bool has_events = false;
  std::span<const EventHandle> after;

  ddl_dtype dtype() const { return call.dtype; }
  Reduction reduction() const { return {call.dtype, call.op, call.prescale, call.postscale}; }
  bool contributes_data(int rank) const { return contributes.empty() || contributes[rank] != 0; }
  /// The number of ranks before end that give data.
  int contributors_before(int end) const;
};

/// The first bytes of the buffers that this rank uses in a call, null where it uses none. Only after check_request().
struct UsedBuffers {
  const std::byte* send = nullptr;
  const std::byte* recv = nullptr;
};
UsedBuffers used_buffers(const Request& request, int rank, int size);

/// Checks everything about a request that one rank can check alone, before any communication: the operation applies
/// to the type, root is a rank, used pointers are not null and are aligned, sizes fit into memory, buffers overlap
/// only as in-place calls allow, and scales are finite and not 0. rank and size are those of the process set. counts
/// has size entries, or is null.
Outcome check_request(const Request& request, int rank, int size);

}  // namespace ddl::runtime
