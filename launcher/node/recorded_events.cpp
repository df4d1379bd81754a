#include "launcher/node/recorded_events.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/deadline.h"

namespace ddl::launcher {
namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, as the ranks'

/// Of a message: a quarter of a MiB, so that heartbeats pass in between.
constexpr std::int64_t kEventsOfPiece = 2048;

std::int64_t nanoseconds(Clock::time_point time) {
  return time.time_since_epoch() / std::chrono::nanoseconds(1);
}

/// A rank may have written any time.
double seconds_between(std::int64_t from, std::int64_t to) {
  constexpr double kNanoseconds = 1e9;
  return std::clamp((static_cast<double>(to) - static_cast<double>(from)) / kNanoseconds, 0.0, kMaxSeconds);
}

/// Lengthens durations of which the begin is known.
class Lengthening {
 public:
  Lengthening(std::int64_t now, std::int64_t watched) : now_(now), watched_(watched) {}

  void apply(Seconds& seconds, std::int64_t begin) const {
    if (begin > 0) seconds = std::max<double>(seconds, seconds_between(std::max(begin, watched_), now_));
  }

  /// The call that the rank is in, or has left last.
  void apply(SetActivity& set, const std::vector<contract::Event>& events) const {
    for (const contract::Event& event : events) {
      const bool is_this = event.kind == contract::Event::Kind::kCall && event.generation == set.generation &&
                           static_cast<std::int64_t>(event.call) == set.call.number;
      const bool is_inside = event.end == contract::Event::kOpen;
      if (is_this && is_inside == set.call.is_inside)
        apply(set.call.seconds, is_inside ? event.begin : event.end);
    }
  }

  void apply(std::vector<TensorActivity>& tensors, const std::vector<contract::Event>& events) const {
    constexpr std::size_t kShown = std::min(contract::TensorRecord::kNameBytes, contract::Event::kNameBytes);
    std::map<std::pair<std::int64_t, std::string_view>, std::int64_t> begins;
    for (const contract::Event& event : events) {
      if (event.kind != contract::Event::Kind::kTensor || event.end != contract::Event::kOpen) continue;
      const std::string_view name(event.name.data(), ::strnlen(event.name.data(), kShown));
      // Of several names with the same beginning the latest counts: it makes none longer than it is.
      begins.insert_or_assign({event.generation, name}, event.begin);
    }
    for (TensorActivity& tensor : tensors) {
      const auto found = begins.find({tensor.generation, std::string_view(tensor.name).substr(0, kShown)});
      if (found != begins.end()) apply(tensor.seconds, found->second);
    }
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const TensorActivity& a, const TensorActivity& b) { return a.seconds > b.seconds; });
  }

 private:
  std::int64_t now_, watched_;
};

}  // namespace

message::Events RecordedEvents::answer(const message::AskEvents& ask, std::size_t local_rank) {
  Copy& copy = copies_[local_rank];
  if (copy.id != ask.id) copy = copy_of(ask, local_rank);
  message::Events piece = message::events_message(ask, copy.ring, kEventsOfPiece);
  piece.now = copy.now;
  piece.earliest = copy.earliest;
  if (const RankSnapshot rank = records_.read(local_rank);
      rank.phase == contract::RankRecord::Phase::kJoining)
    piece.joining_since = rank.phase_since;
  if (piece.from + kEventsOfPiece >= piece.total) copies_.erase(local_rank);
  return piece;
}

RecordedEvents::Copy RecordedEvents::copy_of(const message::AskEvents& ask, std::size_t local_rank) const {
  constexpr std::int64_t kMost = contract::EventRing::kMaxCapacity;
  const std::ptrdiff_t latest = std::clamp<std::int64_t>(ask.latest, 0, kMost);
  Copy copy;
  copy.id = ask.id;
  const auto ended = ended_.find(local_rank);
  copy.now = ended == ended_.end() ? nanoseconds(Clock::now()) : ended->second;
  // Also those that are not wanted say when the first one began.
  copy.ring = records_.events(local_rank, kMost);
  auto& events = copy.ring.events;
  if (const auto before = before_timeline_.find(local_rank);
      ask.of_timeline && before != before_timeline_.end()) {
    std::erase_if(events, [&](const contract::Event& event) { return event.number <= before->second; });
    copy.ring.count -= std::min(copy.ring.count, before->second);
  }
  for (const contract::Event& event : events)
    copy.earliest = copy.earliest == 0 ? event.begin : std::min(copy.earliest, event.begin);
  if (std::ssize(events) > latest) events.erase(events.begin(), events.end() - latest);
  return copy;
}

void RecordedEvents::record_timeline(std::int64_t events) {
  if (events <= 0) return records_.stop_timeline();
  // The times of what was recorded before are not exact.
  for (std::size_t local_rank = 0; local_rank < local_ranks_; ++local_rank)
    before_timeline_[local_rank] = records_.events(local_rank, 0).count;
  constexpr std::int64_t kMost = contract::EventRing::kMaxCapacity;
  records_.record_timeline(std::min(events, kMost));
}

void RecordedEvents::has_ended(std::size_t local_rank) { ended_[local_rank] = nanoseconds(Clock::now()); }

void RecordedEvents::add_to(RankActivity& activity, std::size_t local_rank, const Since& since) {
  const timeline::RingSnapshot ring = records_.events(local_rank, contract::EventRing::kUsuallyKept);
  const Clock::time_point now = Clock::now();
  std::int64_t last = 0;
  for (const contract::Event& event : ring.events) last = std::max({last, event.begin, event.end});
  if (last > 0) activity.last_event = seconds_between(last, nanoseconds(now));
  const Lengthening lengthening(nanoseconds(now), nanoseconds(since.watched));
  // Whatever a rank shows, but for its phase, changes with an event.
  lengthening.apply(activity.seconds, std::max(last, since.phase));
  for (SetActivity& set : activity.sets) lengthening.apply(set, ring.events);
  lengthening.apply(activity.tensors, ring.events);
  add_steps(activity, local_rank, ring.steps, now);
}

void RecordedEvents::add_steps(RankActivity& activity, std::size_t local_rank, std::uint64_t steps,
                               Clock::time_point now) {
  if (steps == 0) return;
  const auto [at, is_first] = steps_.try_emplace(local_rank, StepsSeen{now, steps});
  StepsSeen& seen = at->second;
  const double seconds = std::chrono::duration<double>(now - seen.at).count();
  // Several looks may fall into one step.
  constexpr double kLongestStep = 30;
  if (!is_first && (steps != seen.steps || seconds > kLongestStep)) {
    const double done = static_cast<double>(steps) - static_cast<double>(seen.steps);
    seen = {now, steps, std::max(done, 0.0) / std::max(seconds, 1e-9)};
  }
  activity.steps_per_second = std::min(seen.rate, kMaxSeconds);
}

}  // namespace ddl::launcher
