// How the ranks of a channel stage: with plain or with streaming stores, and, if they are two that write and read, in
// slots that they swap or in places that take turns. A first guess comes from the time in which a cache line goes from
// one rank to another and back, and then a choice by measurement, for each size of a chunk.
//
// A rank that stages overwrites lines that other ranks have read last. If they share a cache with it, that is cheap.
// If they do not, plain stores fetch every line from the other cache first, and streaming stores, which go past the
// caches, are several times as fast; near they are slower. docs/decisions/0031-stores-are-chosen-by-measurement.md
// has the figures, and docs/decisions/0094-two-ranks-swap-their-slots.md those of slots.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/src/common/call.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/shm/segment.h"

namespace ddl::runtime {

// The first guess.

/// The longest round trip of a cache line between the first member and another one, at most sixteen of them
/// (base/core_distance.h). To be called by all members at about the same time, each with a CPU of its own. A member
/// that does not take part in time costs the others at most two milliseconds, and then there is no result. nullopt on
/// the other members, too.
std::optional<std::chrono::nanoseconds> longest_round_trip(const Segment& segment, int index);

/// The stores for ranks at this distance. nullopt, not measured: plain.
Stores stores_at(std::optional<std::chrono::nanoseconds> round_trip);

// The choice by measurement.

/// Chunks are classified by size: class c has those from 1 KiB << c to twice as much, the last class also larger ones.
/// Smaller chunks are always stored plainly.
inline constexpr int kChunkClasses = FlagLine::kChunkClasses;
/// nullopt: too small for streaming stores. Each call asks several times.
constexpr std::optional<int> chunk_class(std::size_t bytes) {
  constexpr std::size_t kSmallest = std::size_t{1} << 10;
  if (bytes < kSmallest) return std::nullopt;
  return std::min(static_cast<int>(std::bit_width(bytes / kSmallest)) - 1, kChunkClasses - 1);
}

/// The lines of smaller chunks are fetched before they are written (Channel), where ranks are far apart, too.
constexpr bool is_fetched(std::size_t bytes) { return bytes < std::size_t{16} << 10; }

/// How two members that both write and read use their slots.
enum class Slots : std::uint8_t {
  kSwapped,  ///< a member writes where it has read last: these lines have come to its core with that
  kInTurns  ///< each in its own slot, at places that take turns: these lines have gone to a cache that both share
};

/// The smallest class for which there is a choice: smaller chunks always lie in swapped slots.
inline constexpr int kFirstSwappable = 4;
static_assert(!is_fetched(std::size_t{1024} << kFirstSwappable));
/// The largest chunk of two members that both write and read: it stays in the caches of both cores.
inline constexpr std::size_t kMostSwapped = std::size_t{64} << 10;
static_assert(chunk_class(kMostSwapped) == kFirstSwappable + FlagLine::kSwappableClasses - 1);

// The work of a sample, which a member publishes in its flag line.

inline constexpr int kWorkExponentBits = 5;
inline constexpr int kWorkDigits = FlagLine::kWorkBits - kWorkExponentBits;
/// As many binary digits as a comparison needs, and an exponent: a flag line has no room for more. 0 only for 0. More
/// than an hour is an hour.
constexpr std::uint32_t packed_work(std::uint64_t ticks) {
  constexpr int kMostBits = kWorkDigits + (1 << kWorkExponentBits) - 1;
  ticks = std::min(ticks, (std::uint64_t{1} << kMostBits) - 1);
  const int exponent = std::max(static_cast<int>(std::bit_width(ticks)) - kWorkDigits, 0);
  return static_cast<std::uint32_t>(exponent) << kWorkDigits | static_cast<std::uint32_t>(ticks >> exponent);
}
constexpr std::uint64_t unpacked_work(std::uint32_t packed) {
  return std::uint64_t{packed & ((1U << kWorkDigits) - 1)} << (packed >> kWorkDigits);
}

/// Chooses between two ways, 0 and 1, for each class of chunks, by what samples of both have cost. Pure.
///
/// The other way is tried for a few samples: at first soon, then ever more rarely while nothing changes, and soon again
/// if the chosen one becomes slower. It is taken if it is clearly faster.
template <class Way>
class MeasuredChoice {
 public:
  /// first(c): what class c begins with. is_guess: nothing was measured for it.
  template <class First>
  MeasuredChoice(First first, bool is_guess) {
    for (int c = 0; c < kChunkClasses; ++c) {
      choices_[c].chosen = first(c);
      rest(choices_[c], is_guess ? kPauseAfterGuess : kPauseAfterMeasured);
    }
  }
  Way chosen(int chunk_class) const { return choices_[chunk_class].chosen; }
  /// What the next samples are to use: the chosen way, or the other one that is tried.
  Way now(int chunk_class) const;
  void add_sample(int chunk_class, CallKind kind, Way way, double cost);

 private:
  static constexpr int kSamplesOfEach = 3;
  /// Samples before the first comparison.
  static constexpr int kPauseAfterMeasured = 16;
  static constexpr int kPauseAfterGuess = 4;

  /// The last costs.
  class Recent {
   public:
    void add(double cost);
    void clear() { count_ = 0; }
    bool is_full() const { return count_ >= kSamplesOfEach; }
    double median() const;

   private:
    std::array<double, kSamplesOfEach> costs_{};
    int count_ = 0;
  };

  enum class State : std::uint8_t {
    kRests,     ///< until some samples have passed, or staging becomes slower
    kCompares,  ///< collects samples of the chosen way
    kTries      ///< collects samples of the other one
  };
  struct Choice {
    Way chosen{};
    State state = State::kRests;
    /// The kind of calls that is compared: others take a different time for the same bytes.
    CallKind kind = CallKind::kNone;
    Recent with_chosen, with_other;
    double usual = 0;  ///< cost of a sample at the end of the last comparison; 0: there was none
    int samples = 0;   ///< in this state
    int pause = 0;     ///< samples of the next rest
  };
  static void rest(Choice& choice, int pause);
  static void compare(Choice& choice, CallKind kind);

  std::array<Choice, kChunkClasses> choices_;
};

/// Chooses for all ranks of a channel; lives on its first rank. Not thread-safe. Pure: it is told what was measured.
class StoreChoice {
 public:
  /// Where the first choice comes from.
  enum class Origin {
    kGiven,     ///< the user: it never changes
    kMeasured,  ///< the round trip
    kUnknown
  };
  /// first: for all classes; if it was measured, for those that are not fetched. The others begin with plain stores, and
  /// swapped slots do where these do.
  StoreChoice(Stores first, Origin origin);

  bool has_fixed_stores() const { return has_fixed_stores_; }
  /// The user's streaming stores go with turns.
  bool has_fixed_slots() const { return has_fixed_slots_; }
  /// Bit c: chunks of class c are to be stored with streaming stores.
  std::uint32_t streamed_classes() const;
  /// Bit c: chunks of class kFirstSwappable + c are to take turns.
  std::uint32_t turning_classes() const;
  /// "streaming stores for chunks from 64 KiB, 512 KiB to twice as much", "plain stores".
  std::string describe() const;
  /// A sample: exchanges of one call, of chunks of one class and staged in the same way. cost: the work of the rank that
  /// had most of it, in any unit of time for each byte.
  void add_sample(int chunk_class, CallKind kind, Stores stores, double cost) {
    if (!has_fixed_stores_) stores_.add_sample(chunk_class, kind, stores, cost);
  }
  void add_sample(int chunk_class, CallKind kind, Slots slots, double cost) {
    if (!has_fixed_slots_) slots_.add_sample(chunk_class, kind, slots, cost);
  }

 private:
  bool has_fixed_stores_, has_fixed_slots_;
  MeasuredChoice<Stores> stores_;
  MeasuredChoice<Slots> slots_;
};

}  // namespace ddl::runtime
