// How far apart two cores are: the time in which a cache line goes from one to the other and back.
//
// What /sys reports about caches does not say it in a virtual machine, which may claim one cache for all its CPUs and
// move them while programs run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/deadline.h"

namespace ddl {

/// From this round trip on, two cores count as far apart. Measured: 60 to 140 ns between cores that share a last-level
/// cache, 300 to 500 ns between others.
inline constexpr std::chrono::nanoseconds kFarCores{220};

/// The median of some round trips from this thread to the one that answers them on the same word, which both spin on
/// and nothing else uses. The word may be in shared memory; it is 0 at first, and may be used again. nullopt if
/// nobody has answered before the deadline.
std::optional<std::chrono::nanoseconds> measure_round_trip(std::atomic<std::uint32_t>& word,
                                                           Deadline deadline);

/// The other side. Returns when all have been answered, or the deadline has passed.
void answer_round_trips(std::atomic<std::uint32_t>& word, Deadline deadline);

}  // namespace ddl
