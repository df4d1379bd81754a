// How a sequence number stands in a flag word, which is also a futex.
//
// Bit 0 says "interrupted": whoever aborts the group sets it, so that the word differs from what a sleeper saw. The
// other 31 bits are the low bits of the sequence. Sequences wrap, so they are compared by signed difference.
#pragma once

#include <cstdint>

namespace ddl::runtime {

inline constexpr std::uint32_t kInterruptedBit = 1;

constexpr std::uint32_t encode_sequence(std::uint32_t sequence) { return sequence << 1; }

/// True if the word shows this sequence or a later one. Valid while they are less than 2^30 apart.
constexpr bool has_reached(std::uint32_t word, std::uint32_t sequence) {
  return static_cast<std::int32_t>((word & ~kInterruptedBit) - encode_sequence(sequence)) >= 0;
}

}  // namespace ddl::runtime
