// Collectives of libddl as calls of NCCL.
#pragma once

#include "runtime/src/backend/nccl/nccl_communicator.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/request.h"

namespace ddl::runtime {

/// What all ranks of a communicator have. As long as that is not known: what they may have.
struct NcclAbilities {
  bool has_kernels = true;               ///< libddl's own have been loaded; averages and factors need them
  bool has_ocp = true, has_fnuz = true;  ///< the library combines these 8-bit floats on the GPU

  bool combines_float8(ddl_dtype dtype) const {
    return dtype == DDL_FLOAT8_E4M3FN || dtype == DDL_FLOAT8_E5M2 ? has_ocp : has_fnuz;
  }
};

/// Whether NCCL has the call. The same on all ranks. What it lacks: scans, bit and logical operations, reductions of
/// bools (whose elements may be any byte), of 16-bit integers and of 8-bit floats that not all GPUs have, averages and
/// factors of integers, and ranks that give no data.
bool is_in_nccl(const Request& request, const NcclAbilities& abilities);

/// Puts a call that is_in_nccl() on the communicator's stream. blocks: of an alltoallv. The GPU is current.
Status put_on_stream(NcclCommunicator& communicator, const Request& request, const BlockMove* blocks,
                     const NcclAbilities& abilities, const NcclCommunicator::MustStop& must_stop);

}  // namespace ddl::runtime
