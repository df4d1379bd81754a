#include "launcher/node/stall_watch.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace ddl::launcher {
namespace {

/// Of a rank, in a report.
constexpr std::size_t kMaxTensors = 256;
/// Parts of a key.
enum ShownPart { kCall, kNamedCall, kTensor, kPhase };

CallActivity activity_of(std::uint64_t word, double seconds) {
  using contract::CallWord;
  CallActivity activity;
  activity.seconds = seconds;
  if (word == 0) return activity;
  const std::size_t kind = CallWord::kind(word);
  activity.kind = kind < contract::kCallNames.size() ? contract::kCallNames[kind] : "call";
  activity.number = CallWord::number(word);
  activity.is_inside = CallWord::is_inside(word);
  return activity;
}

}  // namespace

std::chrono::milliseconds StallWatch::pause() const {
  constexpr double kLooks = 6, kShortest = 0.05, kLongest = 10;
  double seconds = limits_.warning_seconds;
  if (limits_.shutdown_seconds > 0) seconds = std::min(seconds, limits_.shutdown_seconds);
  return std::chrono::milliseconds(
      static_cast<int>(1000 * std::clamp(seconds / kLooks, kShortest, kLongest)));
}

double StallWatch::seconds_of(Rank& rank, Key key, std::uint64_t value, Clock::time_point time) {
  const auto [at, is_new] = rank.shown.try_emplace(key);
  Shown& shown = at->second;
  if (is_new || shown.value != value) {
    shown.value = value;
    shown.since = rank.last_change = time;
  }
  shown.is_current = true;
  return std::chrono::duration<double>(time - shown.since).count();
}

RankActivity StallWatch::look(int number, const RankSnapshot& now, Clock::time_point time) {
  Rank& rank = ranks_[number];
  RankActivity activity;
  activity.rank = number;
  activity.phase = static_cast<RankActivity::Phase>(now.phase);
  activity.inits = now.inits;
  // The next program of a rank may have come to the same phase since the last look.
  seconds_of(rank, {0, kPhase}, std::uint64_t{now.inits} << 32 | static_cast<std::uint64_t>(now.phase), time);
  for (const RankSnapshot::Set& set : now.sets) {
    SetActivity one;
    one.generation = set.generation;
    one.id = set.id;
    one.call = activity_of(set.call, seconds_of(rank, {set.generation, kCall}, set.call, time));
    one.named_call =
        activity_of(set.named_call, seconds_of(rank, {set.generation, kNamedCall}, set.named_call, time));
    one.peer = set.peer;
    one.has_joined = set.has_joined;
    one.waits = set.waits;
    activity.sets.push_back(one);
  }
  std::vector<RankSnapshot::Tensor> in_order = now.tensors;
  std::sort(in_order.begin(), in_order.end(),
            [](const RankSnapshot::Tensor& a, const RankSnapshot::Tensor& b) { return a.state < b.state; });
  for (const RankSnapshot::Tensor& tensor : in_order) {
    TensorActivity one;
    one.generation = tensor.generation;
    one.name = tensor.name.size() < contract::TensorRecord::kNameBytes ? tensor.name : tensor.name + "...";
    one.digest = tensor.digest;
    one.seconds = seconds_of(rank, {tensor.state, kTensor}, tensor.digest, time);
    activity.tensors.push_back(std::move(one));
  }
  activity.open_tensors = now.tensors.size() + now.hidden_tensors;
  std::stable_sort(activity.tensors.begin(), activity.tensors.end(),
                   [](const TensorActivity& a, const TensorActivity& b) { return a.seconds > b.seconds; });
  if (activity.tensors.size() > kMaxTensors) activity.tensors.resize(kMaxTensors);
  for (auto at = rank.shown.begin(); at != rank.shown.end();) {
    const bool is_current = std::exchange(at->second.is_current, false);
    if (!is_current) rank.last_change = time;
    at = is_current ? std::next(at) : rank.shown.erase(at);
  }
  activity.seconds = std::chrono::duration<double>(time - rank.last_change).count();
  return activity;
}

std::optional<double> StallWatch::due(const std::vector<RankActivity>& ranks) {
  double longest = 0;
  for (const RankActivity& rank : ranks) {
    if (rank.phase == RankActivity::Phase::kJoining) longest = std::max<double>(longest, rank.seconds);
    for (const SetActivity& set : rank.sets) {
      if (set.call.is_inside) longest = std::max<double>(longest, set.call.seconds);
      // While others go on, a rank that has joined takes part in their calls.
      if (set.has_joined) longest = std::max<double>(longest, rank.seconds);
    }
    if (!rank.tensors.empty()) longest = std::max<double>(longest, rank.tensors.front().seconds);
  }
  if (longest < limits_.warning_seconds &&
      (limits_.shutdown_seconds <= 0 || longest < limits_.shutdown_seconds)) {
    reported_ = 0;
    return std::nullopt;
  }
  const bool is_last = limits_.shutdown_seconds > 0 && longest >= limits_.shutdown_seconds;
  // A shorter one is another one.
  if (reported_ > 0 && longest >= reported_ && longest < 2 * reported_ && !is_last) return std::nullopt;
  reported_ = longest;
  return longest;
}

}  // namespace ddl::launcher
