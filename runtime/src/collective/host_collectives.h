// The collectives of the ranks of one host, over one channel: staged through its slots, or directly on buffers in the
// shared heap.
#pragma once

#include <optional>

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/shm/channel.h"

namespace ddl::runtime {

// The collectives on host memory, over one channel.
//
// All have one shape. The buffers are cut into chunks that fit into a staging slot. For each chunk a rank copies its part
// into its slot, all ranks exchange, and each takes what it needs from the others' slots. The first exchange also compares
// what the ranks called, so nothing has been written to a user's buffer when a mismatch is found; a call without
// elements makes that one exchange too. A rank reads a chunk of its input before it writes that chunk of its output, so
// in place needs no care. Since two slots are used in turn, copying the next chunk in overlaps with the others' work on
// this one.
//
//   combine everything   every rank reduces all slots itself: one exchange a chunk (small, or two ranks)
//   combine slices       every rank reduces one slice of the chunk and shows it at the next exchange, which is also that of
//                        the next chunk: each byte is read once instead of once per rank
//   move blocks          collective/block_move.h says what goes where
//   direct               on the shared heap (collective/host_collectives.h)
//
// Every element is combined in rank order whichever way is taken: the same bits.
// A world of one exchanges with nobody and copies through its slot.

/// One collective of the ranks of one host, which are those of the channel.
Outcome run_on_one_host(Channel& channel, Request request, CallDeadline deadline);

// Collectives of one host on buffers that lie in the shared heap: nothing is staged.
//
// The ranks show each other where their buffers are, which also says that their inputs are ready. Then each works on the
// others' buffers: of an allreduce a rank reduces its own slice of all inputs, block by block, and pushes each block to
// all outputs while it is still in the cache; what is moved, a rank copies from where the senders have it. At a last
// exchange all have done so. Elements are combined in rank order, as everywhere: the same bits.

/// Runs the call if every rank's buffers are where all can reach them; nullopt if they are not, in which case the ranks
/// have exchanged once and the request's call goes on under the number that it is given. The same on all ranks.
/// blocks: null for allreduce and reduce.
std::optional<Outcome> try_direct(Channel& channel, Request& request, const BlockMove* blocks,
                                  CallDeadline deadline);

}  // namespace ddl::runtime
