// How a call's elements are cut: into chunks one after the other, and each chunk into one slice per lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ddl::runtime {

/// Neighbouring elements.
struct ElementRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const ElementRange&) const = default;
};

/// Part number part of count elements cut evenly into parts; some are empty if there are fewer elements than parts.
inline ElementRange even_part(std::uint64_t count, int part, int parts) {
  const auto cut = [&](int at) {
    return count * static_cast<std::uint64_t>(at) / static_cast<std::uint64_t>(parts);
  };
  return {cut(part), cut(part + 1) - cut(part)};
}

struct Chunking {
  std::uint64_t total = 0;      ///< elements
  std::uint64_t per_chunk = 1;  ///< elements, at least 1
  int lanes = 1;

  std::uint64_t chunks() const { return (total + per_chunk - 1) / per_chunk; }
  /// In the whole call.
  ElementRange chunk(std::uint64_t index) const {
    const std::uint64_t first = index * per_chunk;
    return {first, std::min(per_chunk, total - first)};
  }
  /// In its chunk.
  ElementRange slice(std::uint64_t index, int lane) const {
    return even_part(chunk(index).count, lane, lanes);
  }
};

}  // namespace ddl::runtime
