// Collectives that move elements and combine none, by MPI's functions for them.
#pragma once

#include "runtime/src/backend/mpi/mpi_steps.h"
#include "runtime/src/collective/block_move.h"

namespace ddl::runtime {

/// Moves the blocks: in one step between the callers' buffers, or, where MPI's int would not do, in pieces through memory
/// that is put aside.
Outcome move_blocks(MpiSteps& steps, const MoveInBuffers& here);

}  // namespace ddl::runtime
