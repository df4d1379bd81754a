// Which stores the ranks of a channel use for staging, plain or streaming: a first guess from the time in which a
// cache line goes from one rank to another and back, and then a choice by measurement, for each size of a piece.
//
// A rank that stages overwrites lines that other ranks have read last. If they share a cache with it, that is cheap.
// If they do not, plain stores fetch every line from the other cache first, and streaming stores, which go past the
// caches, are several times as fast; near they are slower. docs/decisions/0031-stores-are-chosen-by-measurement.md
// has the figures.
#pragma once

#include <array>
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

/// Measures how long a cache line takes from the first member to another one and back: the maximum over the members,
/// at most sixteen of them. To be called by all members at about the same time, each with a CPU of its own. A member
/// that does not take part in time costs the others at most two milliseconds, and then there is no result. nullopt on
/// the other members, too.
std::optional<std::chrono::nanoseconds> measure_round_trip(const Segment& segment, int index);

/// From here on ranks count as far apart. Measured: 60 to 140 ns between cores that share a last-level cache, 300 to
/// 500 ns between others.
inline constexpr std::chrono::nanoseconds kFarFrom{220};

/// The stores for ranks at this distance. nullopt, not measured: plain.
Stores stores_at(std::optional<std::chrono::nanoseconds> round_trip);

// The choice by measurement.

/// Pieces, the chunks of a slot that are staged at a time, are classified by size: class c has those from 1 KiB << c
/// to twice as much, the last class also larger ones. Smaller pieces are always stored plainly.
inline constexpr int kPieceClasses = 10;
/// nullopt: too small for streaming stores.
std::optional<int> piece_class(std::size_t bytes);

/// Chooses for all ranks of a channel; lives on its first rank. Not thread-safe. Pure: it is told what was measured.
///
/// For each class the other stores are tried for a few laps: at first soon, then ever more rarely while nothing
/// changes, and soon again if staging becomes slower. They are taken if they are clearly faster.
class StoreChoice {
 public:
  /// Where the first choice comes from.
  enum class Origin {
    kGiven,     ///< the user: it never changes
    kMeasured,  ///< the round trip
    kUnknown
  };
  /// first: for all classes.
  StoreChoice(Stores first, Origin origin);

  bool is_fixed() const { return is_fixed_; }
  /// Bit c: pieces of class c are to be stored with streaming stores.
  std::uint32_t streamed_classes() const;
  /// "streaming stores for pieces from 64 KiB, 512 KiB to twice as much", "plain stores".
  std::string describe() const;
  /// A lap: exchanges of one call, of pieces of one class and with the same stores. cost: the work of the rank that
  /// had most of it, in any unit of time for each byte.
  void add_lap(int piece_class, CallKind kind, Stores stores, double cost);

 private:
  static constexpr int kLapsOfEach = 3;
  /// The last costs.
  class Recent {
   public:
    void add(double cost);
    void clear() { count_ = 0; }
    bool is_full() const { return count_ >= kLapsOfEach; }
    double median() const;

   private:
    std::array<double, kLapsOfEach> costs_{};
    int count_ = 0;
  };
  enum class State : std::uint8_t {
    kRests,     ///< until some laps have passed, or staging becomes slower
    kCompares,  ///< collects laps with the chosen stores
    kTries      ///< collects laps with the others
  };
  struct Choice {
    Stores chosen = Stores::kPlain;
    State state = State::kRests;
    /// The kind of calls that is compared: others take a different time for the same bytes.
    CallKind kind = CallKind::kNone;
    Recent with_chosen, with_other;
    double usual = 0;  ///< cost of a lap at the end of the last comparison; 0: there was none
    int laps = 0;      ///< in this state
    int pause = 0;     ///< laps of the next rest
  };

  static void rest(Choice& choice, int pause);
  static void compare(Choice& choice, CallKind kind);

  std::array<Choice, kPieceClasses> choices_;
  bool is_fixed_;
};

}  // namespace ddl::runtime
