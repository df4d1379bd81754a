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
//   direct               on the shared heap (collective/direct_collectives.h)
//
// Every element is combined in rank order whichever way is taken: the same bits.
// A world of one exchanges with nobody and copies through its slot.
#pragma once

#include "runtime/src/channel/channel.h"
#include "runtime/src/collective/request.h"

namespace ddl::runtime {

/// One collective of the ranks of one host, which are those of the channel.
Outcome run_on_one_host(Channel& channel, Request request, CallDeadline deadline);

}  // namespace ddl::runtime
