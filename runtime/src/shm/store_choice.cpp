#include "runtime/src/shm/store_choice.h"

#include <algorithm>
#include <bit>

#include "base/core_distance.h"

namespace ddl::runtime {
namespace {

constexpr int kMeasuredMembers = 16;
constexpr std::chrono::milliseconds kPatience{2};

bool is_measured(int index, int members) {
  const int step = (members - 1 + kMeasuredMembers - 1) / kMeasuredMembers;
  return index > 0 && (index - 1) % step == 0;
}

}  // namespace

std::optional<std::chrono::nanoseconds> longest_round_trip(const Segment& segment, int index) {
  const Deadline deadline = Deadline::after(kPatience);
  if (index > 0) {
    if (is_measured(index, segment.size())) answer_round_trips(segment.presence(index).ping, deadline);
    return std::nullopt;
  }
  std::chrono::nanoseconds longest{0};
  for (int other = 1; other < segment.size(); ++other) {
    if (!is_measured(other, segment.size())) continue;
    const auto found = measure_round_trip(segment.presence(other).ping, deadline);
    if (!found) return std::nullopt;
    longest = std::max(longest, *found);
  }
  return longest;
}

Stores stores_at(std::optional<std::chrono::nanoseconds> round_trip) {
  return round_trip && *round_trip >= kFarCores ? Stores::kStreaming : Stores::kPlain;
}

namespace {

/// After a change, and at most. A pause is this many times as long as the one before, if nothing has changed.
constexpr int kPauseAfterChange = 16;
constexpr int kLongestPause = 1024;
constexpr int kPauseGrows = 4;
/// The other way is taken if it needs less than this part of the time.
constexpr double kClearlyLess = 0.87;
/// One sample is enough to refuse the other one if it takes this many times as long. And a comparison begins after this
/// number of samples if the chosen one takes this many times as long as usual.
constexpr double kClearlyMore = 1.5;
constexpr int kSoonest = 8;
/// Samples after which a comparison is given up: the program makes other calls now.
constexpr int kMaxSamples = 64;

constexpr std::size_t smallest_of(int chunk_class) { return std::size_t{1024} << chunk_class; }

template <class Way>
Way other(Way way) {
  return way == Way{0} ? Way{1} : Way{0};
}

}  // namespace

template <class Way>
void MeasuredChoice<Way>::Recent::add(double cost) {
  std::rotate(costs_.begin(), costs_.begin() + 1, costs_.end());
  costs_.back() = cost;
  ++count_;
}

template <class Way>
double MeasuredChoice<Way>::Recent::median() const {
  auto sorted = costs_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[kSamplesOfEach / 2];
}

template <class Way>
Way MeasuredChoice<Way>::now(int chunk_class) const {
  const Choice& choice = choices_[chunk_class];
  return choice.state == State::kTries ? other(choice.chosen) : choice.chosen;
}

template <class Way>
void MeasuredChoice<Way>::rest(Choice& choice, int pause) {
  choice.state = State::kRests;
  choice.samples = 0;
  choice.pause = pause;
  choice.with_chosen.clear();
}

template <class Way>
void MeasuredChoice<Way>::compare(Choice& choice, CallKind kind) {
  choice.state = State::kCompares;
  choice.kind = kind;
  choice.samples = 0;
  choice.with_chosen.clear();
  choice.with_other.clear();
}

template <class Way>
void MeasuredChoice<Way>::add_sample(int chunk_class, CallKind kind, Way way, double cost) {
  Choice& choice = choices_[chunk_class];
  ++choice.samples;
  const bool is_alike = kind == choice.kind;
  switch (choice.state) {
    case State::kRests: {
      if (is_alike && way == choice.chosen) choice.with_chosen.add(cost);
      const bool is_slower = choice.samples >= kSoonest && choice.usual > 0 && choice.with_chosen.is_full() &&
                             choice.with_chosen.median() > kClearlyMore * choice.usual;
      if (is_slower) choice.pause = kPauseAfterChange;
      if (is_slower || choice.samples >= choice.pause) compare(choice, kind);
      return;
    }
    case State::kCompares:
      if (is_alike && way == choice.chosen) choice.with_chosen.add(cost);
      if (choice.with_chosen.is_full()) {
        choice.state = State::kTries;
        choice.samples = 0;
      } else if (choice.samples >= kMaxSamples) {
        compare(choice, kind);
      }
      return;
    case State::kTries:
      if (is_alike && way != choice.chosen) {
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
      } else if (choice.samples >= kMaxSamples) {
        rest(choice, choice.pause);
      }
      return;
  }
}

template class MeasuredChoice<Stores>;
template class MeasuredChoice<Slots>;

StoreChoice::StoreChoice(Stores first, Origin origin)
    : has_fixed_stores_(origin == Origin::kGiven),
      has_fixed_slots_(has_fixed_stores_ && first == Stores::kStreaming),
      stores_(
          [&](int c) {
            return origin == Origin::kMeasured && is_fetched(smallest_of(c)) ? Stores::kPlain : first;
          },
          origin != Origin::kMeasured),
      slots_([&](int) { return first == Stores::kStreaming ? Slots::kInTurns : Slots::kSwapped; },
             origin != Origin::kMeasured) {}

std::uint32_t StoreChoice::streamed_classes() const {
  std::uint32_t classes = 0;
  for (int c = 0; c < kChunkClasses; ++c) {
    if (stores_.now(c) == Stores::kStreaming) classes |= std::uint32_t{1} << c;
  }
  return classes;
}

std::uint32_t StoreChoice::turning_classes() const {
  std::uint32_t classes = 0;
  for (int c = 0; c < FlagLine::kSwappableClasses; ++c) {
    if (slots_.now(kFirstSwappable + c) == Slots::kInTurns) classes |= std::uint32_t{1} << c;
  }
  return classes;
}

std::string StoreChoice::describe() const {
  std::string streamed, turning;
  const auto add = [](std::string& sizes, int c) {
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(1 << c) + " KiB";
  };
  for (int c = 0; c < kChunkClasses; ++c) {
    if (stores_.chosen(c) == Stores::kStreaming) add(streamed, c);
  }
  for (int c = kFirstSwappable; c < kFirstSwappable + FlagLine::kSwappableClasses; ++c) {
    if (slots_.chosen(c) == Slots::kInTurns) add(turning, c);
  }
  std::string text = streamed.empty() ? "plain stores"
                                      : "streaming stores for chunks from " + streamed + " to twice as much";
  if (!turning.empty()) text += "; two ranks take turns with chunks from " + turning + " to twice as much";
  return text;
}

}  // namespace ddl::runtime
