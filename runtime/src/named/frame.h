// What a rank says in one round of agreement, as bytes, and how every rank gets what all say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/named/tensor.h"

namespace ddl::runtime {

struct Frame {
  std::vector<Announcement> announcements;  ///< of tensors that this rank has not announced before
  bool has_joined = false;                  ///< it has no more data
  std::uint64_t steps = 0;                  ///< how often its program has ended a step
  std::uint64_t fusion_bytes = 0;           ///< what is executed together; that of the first rank holds

  /// CBOR.
  std::vector<std::uint8_t> to_bytes() const;
  /// kProtocol unless the bytes are a frame of a process set of this number of ranks.
  static Result<Frame> parse(std::span<const std::uint8_t> bytes, int ranks);
};

/// The frames of all ranks, by rank; collective over the backend's ranks, whose number is ranks. timeout_seconds: of
/// each of the two calls.
tl::expected<std::vector<Frame>, Failure> exchange_frames(CollectiveBackend& backend, const Frame& own,
                                                          int ranks, double timeout_seconds);

}  // namespace ddl::runtime
