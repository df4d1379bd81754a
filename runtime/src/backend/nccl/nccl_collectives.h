// Collectives of libddl as calls of NCCL.
#pragma once

#include "runtime/src/backend/nccl/nccl_communicator.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/request.h"

namespace ddl::runtime {

/// Whether NCCL has the call. The same on all ranks. What it lacks: scans, bit and logical operations, reductions of
/// bools (whose elements may be any byte) and of 16-bit integers, averages and factors of integers, and ranks that give no
/// data. has_kernels: libddl's kernels have been loaded on all ranks; averages and factors need them.
bool is_in_nccl(const Request& request, bool has_kernels);

/// Puts a call that is_in_nccl() on the communicator's stream. blocks: of an alltoallv. has_kernels: as above. The GPU is
/// current.
Status put_on_stream(NcclCommunicator& communicator, const Request& request, const BlockMove* blocks,
                     bool has_kernels, const NcclCommunicator::MustStop& must_stop);

}  // namespace ddl::runtime
