// How a sequence number stands in a flag word, which is also a futex.
//
// Bit 0 says "interrupted": whoever aborts the group sets it, so that the word differs from what a sleeper saw. Bit 1
// says "somebody may sleep on this": a sleeper sets it, the word's owner takes it away with its next sequence. The
// other 30 bits are the low bits of the sequence. Sequences wrap, so they are compared by signed difference.
#pragma once

#include <cstdint>

namespace ddl::runtime {

inline constexpr std::uint32_t kInterruptedBit = 1;
inline constexpr std::uint32_t kSleeperBit = 2;

constexpr std::uint32_t encode_sequence(std::uint32_t sequence) { return sequence << 2; }

/// True if the word shows this sequence or a later one. Valid while they are less than 2^29 apart.
constexpr bool has_reached(std::uint32_t word, std::uint32_t sequence) {
  return static_cast<std::int32_t>((word & ~(kInterruptedBit | kSleeperBit)) - encode_sequence(sequence)) >=
         0;
}

}  // namespace ddl::runtime
