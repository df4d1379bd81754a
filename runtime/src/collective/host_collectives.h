// The collectives on host memory, over one channel.
//
// All have one shape. The buffers are cut into chunks of one staging slot. For each chunk a rank copies its part into
// its slot, all ranks exchange, and each takes what it needs from the others' slots. The first exchange also compares
// what the ranks called, so nothing has been written to a user's buffer when a mismatch is found; a call without
// elements makes that one exchange too. A rank reads a chunk of its input before it writes that chunk of its output, so
// in place needs no care. Since two slots are used in turn, copying the next chunk in overlaps with the others' work on
// this one.
//
// Arguments have been checked: see api/validate.h. A world of one exchanges with nobody and copies through its slot.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ddl/ddl.h"
#include "runtime/src/channel/channel.h"

namespace ddl::runtime {

/// Every rank reduces all slots in rank order, so every rank computes the same bits.
Outcome allreduce(Channel& channel, const std::byte* send, std::byte* recv, std::uint64_t count,
                  ddl_dtype dtype, ddl_op op, CallDeadline deadline);

Outcome broadcast(Channel& channel, std::byte* buffer, std::uint64_t count, ddl_dtype dtype, int root,
                  CallDeadline deadline);

/// recv holds size * count elements; send may be this rank's part of it.
Outcome allgather(Channel& channel, const std::byte* send, std::byte* recv, std::uint64_t count,
                  ddl_dtype dtype, CallDeadline deadline);

Outcome barrier(Channel& channel, CallDeadline deadline);

}  // namespace ddl::runtime
