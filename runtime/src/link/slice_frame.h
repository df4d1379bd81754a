// What stands before a slice on the wire.
#pragma once

#include <cstdint>

namespace ddl::runtime {

/// Says which slice it is. Several are on their way between two ranks at once, and which of two chunks is ready first is
/// each rank's own affair: so the receiver finds by the frame where a slice goes, and ranks that have come apart notice it.
/// Plain data between machines of one byte order.
struct SliceFrame {
  static constexpr std::uint32_t kMagic = 0x44444C53;  // "DDLS"
  std::uint32_t magic = kMagic;
  std::uint32_t turn = 0;   ///< how many of the chunk's slices have gone this way between the two before
  std::uint64_t call = 0;   ///< its number
  std::uint64_t chunk = 0;  ///< its index
  std::uint64_t bytes = 0;
  bool operator==(const SliceFrame&) const = default;
};

}  // namespace ddl::runtime
