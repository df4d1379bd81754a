// What every rank of an alltoallv has for every other one, which the ranks tell each other before the data move.
#pragma once

#include <tl/expected.hpp>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/collective/block_move.h"

namespace ddl::runtime {

/// For calls on memory of GPUs, whose ranks have compared the call. Stores what this rank receives in
/// request.recv_counts. DDL_ERROR_MISMATCH on all ranks: some rank has no room for what it is sent.
tl::expected<BlockMove, Failure> exchange_counts(CollectiveBackend& host, Connections& connections,
                                                 const Request& request, CallDeadline deadline);

}  // namespace ddl::runtime
