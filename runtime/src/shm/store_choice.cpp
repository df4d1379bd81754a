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

/// Samples before the first comparison of a class, if the first guess was measured, and if not; after a change; and at
/// most. A pause is this many times as long as the one before, if nothing has changed.
constexpr int kFirstPause = 16;
constexpr int kPauseAfterNoGuess = 4;
constexpr int kPauseAfterChange = 16;
constexpr int kLongestPause = 1024;
constexpr int kPauseGrows = 4;
/// The other stores are taken if they need less than this part of the time.
constexpr double kClearlyLess = 0.87;
/// One sample is enough to refuse the others if it takes this many times as long. And a comparison begins after this
/// number of samples if staging with the chosen ones takes this many times as long as usual.
constexpr double kClearlyMore = 1.5;
constexpr int kSoonest = 8;
/// Samples after which a comparison is given up: the program makes other calls now.
constexpr int kMaxSamples = 64;

constexpr std::size_t smallest_of(int chunk_class) { return std::size_t{1024} << chunk_class; }

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
  return sorted[kSamplesOfEach / 2];
}

StoreChoice::StoreChoice(Stores first, Origin origin) : is_fixed_(origin == Origin::kGiven) {
  for (int c = 0; c < kChunkClasses; ++c) {
    const bool is_plain = origin == Origin::kMeasured && is_fetched(smallest_of(c));
    choices_[c].chosen = is_plain ? Stores::kPlain : first;
    rest(choices_[c], origin == Origin::kMeasured ? kFirstPause : kPauseAfterNoGuess);
  }
}

std::uint32_t StoreChoice::streamed_classes() const {
  std::uint32_t classes = 0;
  for (int c = 0; c < kChunkClasses; ++c) {
    const Choice& choice = choices_[c];
    const Stores now = choice.state == State::kTries ? other(choice.chosen) : choice.chosen;
    if (now == Stores::kStreaming) classes |= std::uint32_t{1} << c;
  }
  return classes;
}

std::string StoreChoice::describe() const {
  std::string sizes;
  for (int c = 0; c < kChunkClasses; ++c) {
    if (choices_[c].chosen != Stores::kStreaming) continue;
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(1 << c) + " KiB";
  }
  return sizes.empty() ? "plain stores" : "streaming stores for chunks from " + sizes + " to twice as much";
}

void StoreChoice::rest(Choice& choice, int pause) {
  choice.state = State::kRests;
  choice.samples = 0;
  choice.pause = pause;
  choice.with_chosen.clear();
}

void StoreChoice::compare(Choice& choice, CallKind kind) {
  choice.state = State::kCompares;
  choice.kind = kind;
  choice.samples = 0;
  choice.with_chosen.clear();
  choice.with_other.clear();
}

void StoreChoice::add_sample(int chunk_class, CallKind kind, Stores stores, double cost) {
  if (is_fixed_) return;
  Choice& choice = choices_[chunk_class];
  ++choice.samples;
  const bool is_alike = kind == choice.kind;
  switch (choice.state) {
    case State::kRests: {
      if (is_alike && stores == choice.chosen) choice.with_chosen.add(cost);
      const bool is_slower = choice.samples >= kSoonest && choice.usual > 0 && choice.with_chosen.is_full() &&
                             choice.with_chosen.median() > kClearlyMore * choice.usual;
      if (is_slower) choice.pause = kPauseAfterChange;
      if (is_slower || choice.samples >= choice.pause) compare(choice, kind);
      return;
    }
    case State::kCompares:
      if (is_alike && stores == choice.chosen) choice.with_chosen.add(cost);
      if (choice.with_chosen.is_full()) {
        choice.state = State::kTries;
        choice.samples = 0;
      } else if (choice.samples >= kMaxSamples) {
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
      } else if (choice.samples >= kMaxSamples) {
        rest(choice, choice.pause);
      }
      return;
  }
}

}  // namespace ddl::runtime
