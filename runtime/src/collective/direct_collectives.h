// Collectives of one host on buffers that lie in the shared heap: nothing is staged.
//
// The ranks show each other where their buffers are, which also says that their inputs are ready. Then each works on the
// others' buffers: of an allreduce a rank reduces its own slice of all inputs, block by block, and pushes each block to
// all outputs while it is still in the cache; what is moved, a rank copies from where the senders have it. At a last
// exchange all have done so. Elements are combined in rank order, as everywhere: the same bits.
#pragma once

#include <optional>

#include "runtime/src/channel/channel.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/request.h"

namespace ddl::runtime {

/// Runs the call if every rank's buffers are where all can reach them; nullopt if they are not, in which case the ranks
/// have exchanged once and the request's call goes on under the number that it is given. The same on all ranks.
/// blocks: null for allreduce and reduce.
std::optional<Outcome> try_direct(Channel& channel, Request& request, const BlockMove* blocks,
                                  CallDeadline deadline);

}  // namespace ddl::runtime
