// The collectives of the ranks of one host, over one channel: staged through its slots, or directly on buffers in the
// shared heap.
#pragma once

#include <optional>

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/shm/channel.h"

namespace ddl::runtime {

// The collectives on CPU memory, over one channel.
//
// All have one structure. The buffers are cut into chunks that fit into a staging slot. For each chunk a rank copies
// its part into its slot, all ranks exchange, and each takes what it needs from the others' slots. The first exchange
// also compares the ranks' calls, so nothing has been written to a user's buffer when a mismatch is found; a call
// without elements makes that one exchange too. A rank reads a chunk of its input before it writes that chunk of its
// output, so in-place calls need no special care. Since two slots are used in turn, copying the next chunk in
// overlaps with the others' work on this one.
//
//   whole         every rank reduces all slots itself: one exchange per chunk (small, or two ranks)
//   slices        every rank reduces one slice of the chunk and publishes it at the next exchange, which is also that
//                 of the next chunk: each byte is read once, not once per rank
//   move blocks   with the counts of collective/block_move.h
//   shared heap   without staging, see try_direct()
//
// An allreduce of several tensors is one of the row of all their elements: staging also packs them, and results are
// written to each tensor. Ranks that give no data are not among the inputs, but reduce slices for the others.
//
// Every algorithm combines every element in rank order: the same bits.
// A world of one copies through its slot without waiting.

/// One collective of the ranks of one host, which are those of the channel.
Outcome run_on_one_host(Channel& channel, const Request& request, CallDeadline deadline);

// Collectives of one host on buffers that lie in the shared heap: nothing is staged.
//
// The ranks exchange the offsets of their buffers, which also signals that their inputs are ready. Then each accesses
// the others' buffers: in an allreduce a rank reduces its own slice of all inputs, block by block, and writes each
// block to all outputs while it is still in the cache; in a move a rank copies from the senders' buffers. A last
// exchange ends the call. Elements are combined in rank order, as everywhere: the same bits.

/// Whether the call is so large that nothing is to be staged if possible, and somebody uses the heap. The same on all
/// ranks. blocks: null for allreduce and reduce. Calls of several tensors, and of ranks without data, are staged.
bool may_be_direct(const Channel& channel, const Request& request, const BlockMove* blocks);

/// Runs such a call if all buffers concerned lie in the shared heap; otherwise nullopt. Then the ranks have exchanged
/// once, and request.call has got the number with which it continues. The same on all ranks.
std::optional<Outcome> try_direct(Channel& channel, Request& request, const BlockMove* blocks,
                                  CallDeadline deadline);

}  // namespace ddl::runtime
