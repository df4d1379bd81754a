// Collectives that combine elements: MPI moves them, libddl's kernels combine them along the canonical tree.
#pragma once

#include "runtime/src/backend/mpi/mpi_steps.h"
#include "runtime/src/collective/request.h"

namespace ddl::runtime {

/// An allreduce, reduce, reduce_scatter or scan whose ranks have agreed on it.
Outcome reduce_by_mpi(MpiSteps& steps, const Request& request);

}  // namespace ddl::runtime
