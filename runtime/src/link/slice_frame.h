// What stands before a slice, or a piece of one, on the wire.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddl::runtime {

/// Says which slice it is, and where in it the bytes lie that follow. Several slices are on their way between two ranks at
/// once, which of two chunks is ready first is each rank's own affair, and the pieces of one come over several sockets: so
/// the receiver finds by the frame where they go, and ranks that have come apart notice it. Plain data between machines of
/// one byte order.
struct SliceFrame {
  static constexpr std::uint32_t kMagic = 0x44444C53;  // "DDLS"
  std::uint32_t magic = kMagic;
  std::uint32_t turn = 0;   ///< how many of the chunk's slices have gone this way between the two before
  std::uint64_t call = 0;   ///< its number
  std::uint32_t chunk = 0;  ///< the lower half of its index: only a few are on their way at once
  std::uint32_t bytes = 0;  ///< of the whole slice
  std::uint32_t first = 0;  ///< where in it the piece begins
  std::uint32_t piece = 0;  ///< how many bytes follow

  bool operator==(const SliceFrame&) const = default;
};
static_assert(sizeof(SliceFrame) == 32);

/// What the ordered stream begins with wherever a slice's frame could stand instead.
inline constexpr std::uint32_t kOrderedMagic = 0x44444C41;  // "DDLA"

/// A slice that is longer goes in pieces over all sockets; one that is not goes over the first, in one system call where
/// the socket has room.
inline constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

/// How long the pieces are in which a slice goes: at most kPieceBytes, equal but for the last, of whole cache lines.
constexpr std::size_t piece_bytes_of(std::size_t slice_bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t pieces = (slice_bytes + kPieceBytes - 1) / kPieceBytes;
  if (pieces <= 1) return slice_bytes;
  return ((slice_bytes + pieces - 1) / pieces + kLine - 1) / kLine * kLine;
}

}  // namespace ddl::runtime
