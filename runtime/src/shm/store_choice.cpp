#include "runtime/src/shm/store_choice.h"

#include <algorithm>
#include <bit>

#include "base/deadline.h"

namespace ddl::runtime {
namespace {

using Clock = Deadline::Clock;

constexpr std::size_t kSmallestPiece = std::size_t{1} << 10;

constexpr int kMeasuredMembers = 16;
constexpr std::uint32_t kRoundTrips = 24;
/// The word after the last round trip.
constexpr std::uint32_t kEnd = ~std::uint32_t{0};
constexpr std::chrono::milliseconds kPatience{2};

bool is_measured(int index, int members) {
  const int step = (members - 1 + kMeasuredMembers - 1) / kMeasuredMembers;
  return index > 0 && (index - 1) % step == 0;
}

/// Waits for a value for which accepts() is true; nullopt if there is none before the end.
template <class Accepts>
std::optional<std::uint32_t> await(const SharedWord& word, Clock::time_point end, Accepts accepts) {
  constexpr int kProbes = 64;
  do {
    for (int probe = 0; probe < kProbes; ++probe) {
      if (const std::uint32_t value = word.load(std::memory_order_acquire); accepts(value)) return value;
    }
  } while (Clock::now() < end);
  return std::nullopt;
}

/// The other side of a round trip: an odd number is answered by the next even one.
void answer(SharedWord& word, Clock::time_point end) {
  for (;;) {
    const auto asked = await(word, end, [](std::uint32_t value) { return value % 2 == 1; });
    if (!asked || *asked == kEnd) return;
    // Not a store: the first member may have given up and ended.
    std::uint32_t expected = *asked;
    word.compare_exchange_strong(expected, *asked + 1);
  }
}

std::optional<std::chrono::nanoseconds> ask(SharedWord& word, Clock::time_point end) {
  std::array<std::chrono::nanoseconds, kRoundTrips> times;
  for (std::uint32_t trip = 0; trip < kRoundTrips; ++trip) {
    const auto start = Clock::now();
    word.store(2 * trip + 1, std::memory_order_release);
    if (!await(word, end, [&](std::uint32_t value) { return value == 2 * trip + 2; })) return std::nullopt;
    times[trip] = Clock::now() - start;
  }
  std::sort(times.begin(), times.end());
  return times[kRoundTrips / 4];
}

}  // namespace

std::optional<std::chrono::nanoseconds> measure_round_trip(const Segment& segment, int index) {
  const Clock::time_point end = Clock::now() + kPatience;
  if (index > 0) {
    if (is_measured(index, segment.size())) answer(segment.presence(index).ping, end);
    return std::nullopt;
  }
  std::optional<std::chrono::nanoseconds> longest;
  bool is_complete = true;
  for (int other = 1; other < segment.size(); ++other) {
    if (!is_measured(other, segment.size())) continue;
    SharedWord& word = segment.presence(other).ping;
    const auto found = is_complete ? ask(word, end) : std::nullopt;
    word.store(kEnd, std::memory_order_release);
    is_complete = found.has_value();
    if (found) longest = std::max(longest.value_or(*found), *found);
  }
  return is_complete ? longest : std::nullopt;
}

Stores stores_at(std::optional<std::chrono::nanoseconds> round_trip) {
  return round_trip && *round_trip >= kFarFrom ? Stores::kStreaming : Stores::kPlain;
}

std::optional<int> piece_class(std::size_t bytes) {
  if (bytes < kSmallestPiece) return std::nullopt;
  return std::min(static_cast<int>(std::bit_width(bytes / kSmallestPiece)) - 1, kPieceClasses - 1);
}

namespace {

/// Laps before the first comparison of a class, if the first guess was measured, and if not; after a change; and at
/// most. A pause is this many times as long as the one before, if nothing has changed.
constexpr int kFirstPause = 16;
constexpr int kPauseAfterNoGuess = 4;
constexpr int kPauseAfterChange = 16;
constexpr int kLongestPause = 1024;
constexpr int kPauseGrows = 4;
/// The other stores are taken if they need less than this part of the time.
constexpr double kClearlyLess = 0.87;
/// One lap is enough to refuse the others if it takes this many times as long. And a comparison begins after this
/// number of laps if staging with the chosen ones takes this many times as long as usual.
constexpr double kClearlyMore = 1.5;
constexpr int kSoonest = 8;
/// Laps after which a comparison is given up: the program makes other calls now.
constexpr int kMaxLaps = 64;

Stores other(Stores stores) { return stores == Stores::kPlain ? Stores::kStreaming : Stores::kPlain; }

}  // namespace

void StoreChoice::Recent::add(double cost) {
  std::rotate(costs_.begin(), costs_.begin() + 1, costs_.end());
  costs_.back() = cost;
  ++count_;
}

double StoreChoice::Recent::median() const {
  auto sorted = costs_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[kLapsOfEach / 2];
}

StoreChoice::StoreChoice(Stores first, Origin origin) : is_fixed_(origin == Origin::kGiven) {
  for (Choice& choice : choices_) {
    choice.chosen = first;
    rest(choice, origin == Origin::kMeasured ? kFirstPause : kPauseAfterNoGuess);
  }
}

std::uint32_t StoreChoice::streamed_classes() const {
  std::uint32_t classes = 0;
  for (int c = 0; c < kPieceClasses; ++c) {
    const Choice& choice = choices_[static_cast<std::size_t>(c)];
    const Stores now = choice.state == State::kTries ? other(choice.chosen) : choice.chosen;
    if (now == Stores::kStreaming) classes |= std::uint32_t{1} << c;
  }
  return classes;
}

std::string StoreChoice::describe() const {
  std::string sizes;
  for (int c = 0; c < kPieceClasses; ++c) {
    if (choices_[static_cast<std::size_t>(c)].chosen != Stores::kStreaming) continue;
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(1 << c) + " KiB";
  }
  return sizes.empty() ? "plain stores" : "streaming stores for pieces from " + sizes + " to twice as much";
}

void StoreChoice::rest(Choice& choice, int pause) {
  choice.state = State::kRests;
  choice.laps = 0;
  choice.pause = pause;
  choice.with_chosen.clear();
}

void StoreChoice::compare(Choice& choice, CallKind kind) {
  choice.state = State::kCompares;
  choice.kind = kind;
  choice.laps = 0;
  choice.with_chosen.clear();
  choice.with_other.clear();
}

void StoreChoice::add_lap(int piece_class, CallKind kind, Stores stores, double cost) {
  if (is_fixed_) return;
  Choice& choice = choices_[static_cast<std::size_t>(piece_class)];
  ++choice.laps;
  const bool is_alike = kind == choice.kind;
  switch (choice.state) {
    case State::kRests: {
      if (is_alike && stores == choice.chosen) choice.with_chosen.add(cost);
      const bool is_slower = choice.laps >= kSoonest && choice.usual > 0 && choice.with_chosen.is_full() &&
                             choice.with_chosen.median() > kClearlyMore * choice.usual;
      if (is_slower) choice.pause = kPauseAfterChange;
      if (is_slower || choice.laps >= choice.pause) compare(choice, kind);
      return;
    }
    case State::kCompares:
      if (is_alike && stores == choice.chosen) choice.with_chosen.add(cost);
      if (choice.with_chosen.is_full()) {
        choice.state = State::kTries;
        choice.laps = 0;
      } else if (choice.laps >= kMaxLaps) {
        compare(choice, kind);
      }
      return;
    case State::kTries:
      if (is_alike && stores != choice.chosen) {
        choice.with_other.add(cost);
        if (cost > kClearlyMore * choice.with_chosen.median()) {
          choice.usual = choice.with_chosen.median();
          return rest(choice, std::min(kPauseGrows * choice.pause, kLongestPause));
        }
      }
      if (choice.with_other.is_full()) {
        const double with_chosen = choice.with_chosen.median(), with_other = choice.with_other.median();
        const bool is_better = with_other < kClearlyLess * with_chosen;
        if (is_better) choice.chosen = other(choice.chosen);
        choice.usual = is_better ? with_other : with_chosen;
        rest(choice, is_better ? kPauseAfterChange : std::min(kPauseGrows * choice.pause, kLongestPause));
      } else if (choice.laps >= kMaxLaps) {
        rest(choice, choice.pause);
      }
      return;
  }
}

}  // namespace ddl::runtime
