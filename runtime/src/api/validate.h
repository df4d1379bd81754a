// The checks of a call's arguments, made before anybody else hears of the call.
#pragma once

#include "runtime/src/collective/request.h"
#include "runtime/src/failure.h"

namespace ddl::runtime {

/// Everything about a request that one rank can see alone: type and operation exist and go together, root is a rank,
/// pointers that are used are there and aligned, sizes fit into memory, buffers overlap only where the collective works in
/// place, and scales are numbers. rank and size are those of the process set. counts has size entries, or is null.
Outcome check_request(const Request& request, int rank, int size);

}  // namespace ddl::runtime
