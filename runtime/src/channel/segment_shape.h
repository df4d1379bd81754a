// The measures of a shared segment, before it exists.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/src/channel/exchange_wish.h"

namespace ddl::runtime {

/// As many members as a segment's records are laid out for.
inline constexpr int kMaxMembers = 1024;

/// What the first rank of a group asks of the segment that it makes.
struct SegmentWish {
  std::size_t slot_bytes = std::size_t{32} << 10;  ///< one staging slot; a multiple of 64
  std::size_t heap_bytes = 0;  ///< of each member's part of the shared heap; a multiple of the page size
  /// One staging slot of every pair of members; a multiple of 64, or 0 for no pairs.
  std::size_t pair_slot_bytes = 0;
  std::uint32_t first_sequence = 0;  ///< sequence that the first exchange follows; tests start near the wrap
  ExchangeWish exchange;             ///< how the members meet
};

}  // namespace ddl::runtime
