// How a rank stages: copies of its data, and results that it computes, into its slot of a channel, with the stores
// that the channel has chosen (shm/store_choice.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/instruction_set.h"
#include "runtime/src/shm/channel.h"

namespace ddl::runtime {

/// How the ranks of one host use their slots in a staged call.
constexpr SlotUse slot_use(CallKind kind) {
  return has_root(kind) || kind == CallKind::kScan ? SlotUse::kOneWay : SlotUse::kBothWays;
}

/// Copies bytes into this rank's slot for the next exchange. Empty copies are allowed.
inline void stage_bytes(const Channel& channel, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (channel.stores() == Stores::kStreaming && bytes >= kLineBytes) {
    kernels().stream(from, to, bytes);
  } else {
    copy_bytes(to, from, bytes);
  }
}

/// Stages elements that make(first, count, out) computes. Streamed ones are made in a block that stays in the L1
/// cache.
template <class Make>
void stage_made(const Channel& channel, std::byte* to, std::uint64_t count, std::size_t element, Make make) {
  constexpr std::size_t kBlockBytes = std::size_t{8} << 10;
  if (channel.stores() == Stores::kPlain) return make(std::uint64_t{0}, count, to);
  alignas(kLineBytes) std::array<std::byte, kBlockBytes> block;
  const std::uint64_t per_block = kBlockBytes / element;
  for (std::uint64_t first = 0; first < count; first += per_block) {
    const std::uint64_t size = std::min(per_block, count - first);
    make(first, size, block.data());
    stage_bytes(channel, to + first * element, block.data(), size * element);
  }
}

}  // namespace ddl::runtime
