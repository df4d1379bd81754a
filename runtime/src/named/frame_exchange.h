// How every rank gets the frames of all: the second half of a round of agreement.
#pragma once

#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/named/frame.h"

namespace ddl::runtime {

/// The frames of all ranks, by rank; collective over the backend's ranks, whose number is ranks. timeout_seconds: of
/// each of the two calls.
tl::expected<std::vector<Frame>, Failure> exchange_frames(CollectiveBackend& backend, const Frame& own,
                                                          int ranks, double timeout_seconds);

}  // namespace ddl::runtime
