// How a staging slot is used when a job has several hosts.
//
//   input     what this rank puts in
//   result    the slice of the result that this rank has brought from the other hosts
//   verdict   whether all ranks called the same
#pragma once

#include <algorithm>
#include <cstddef>

#include "runtime/src/channel/segment.h"
#include "runtime/src/cluster/verdict.h"

namespace ddl::runtime {

struct SlotAreas {
  static constexpr std::size_t kVerdictBytes = (sizeof(Verdict) + kLineBytes - 1) / kLineBytes * kLineBytes;

  std::size_t area_bytes = 0;  ///< of input, and of result; a multiple of kLineBytes

  /// staging_bytes is a multiple of kLineBytes. Every rank's part of an allgather has room for a line at least.
  static SlotAreas of(std::size_t staging_bytes, int ranks) {
    return {std::max(staging_bytes, static_cast<std::size_t>(ranks) * kLineBytes)};
  }
  /// The areas of slots that were made so.
  static SlotAreas in_slot(std::size_t slot_bytes) { return {(slot_bytes - kVerdictBytes) / 2}; }
  std::size_t slot_bytes() const { return 2 * area_bytes + kVerdictBytes; }
  std::byte* input(std::byte* slot) const { return slot; }
  const std::byte* input(const std::byte* slot) const { return slot; }
  std::byte* result(std::byte* slot) const { return slot + area_bytes; }
  const std::byte* result(const std::byte* slot) const { return slot + area_bytes; }
  std::byte* verdict(std::byte* slot) const { return slot + 2 * area_bytes; }
  const std::byte* verdict(const std::byte* slot) const { return slot + 2 * area_bytes; }
};

}  // namespace ddl::runtime
