#include "base/core_distance.h"

#include <algorithm>
#include <array>

namespace ddl {
namespace {

constexpr std::uint32_t kRoundTrips = 12;

/// The word's next even value, from which both sides count: an odd one may have been asked before the other side began.
std::uint32_t first_of(const std::atomic<std::uint32_t>& word) {
  return word.load(std::memory_order_relaxed) / 2 * 2;
}

/// Spins until the word has this value; false if the deadline passes first.
bool await(const std::atomic<std::uint32_t>& word, std::uint32_t value, Deadline deadline) {
  constexpr int kProbes = 64;  // between two looks at the clock
  do {
    for (int probe = 0; probe < kProbes; ++probe) {
      if (word.load(std::memory_order_acquire) == value) return true;
    }
  } while (!deadline.has_passed());
  return false;
}

}  // namespace

std::optional<std::chrono::nanoseconds> measure_round_trip(std::atomic<std::uint32_t>& word,
                                                           Deadline deadline) {
  const std::uint32_t first = first_of(word);
  std::array<std::chrono::nanoseconds, kRoundTrips> times;
  for (std::uint32_t trip = 0; trip < kRoundTrips; ++trip) {
    const auto started = Deadline::Clock::now();
    word.store(first + 2 * trip + 1, std::memory_order_release);
    if (!await(word, first + 2 * trip + 2, deadline)) return std::nullopt;
    times[trip] = Deadline::Clock::now() - started;
  }
  std::sort(times.begin(), times.end());
  return times[kRoundTrips / 2];
}

void answer_round_trips(std::atomic<std::uint32_t>& word, Deadline deadline) {
  const std::uint32_t first = first_of(word);
  for (std::uint32_t trip = 0; trip < kRoundTrips; ++trip) {
    if (!await(word, first + 2 * trip + 1, deadline)) return;
    word.store(first + 2 * trip + 2, std::memory_order_release);
  }
}

}  // namespace ddl
