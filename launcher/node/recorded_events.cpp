#include "launcher/node/recorded_events.h"

#include <algorithm>
#include <utility>

#include "base/deadline.h"

namespace ddl::launcher {
namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, as the ranks'

/// Of a message: a quarter of a MiB, so that heartbeats pass in between.
constexpr std::size_t kEventsOfPiece = 2048;

std::int64_t nanoseconds(Clock::time_point time) {
  return time.time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

message::Events RecordedEvents::answer(const message::AskEvents& ask, std::size_t local_rank) {
  Copy& copy = copies_[local_rank];
  if (copy.id != ask.id) copy = copy_of(ask, local_rank);
  message::Events piece = message::events_message(ask, copy.ring, kEventsOfPiece);
  piece.now = copy.now;
  piece.earliest = copy.earliest;
  if (piece.from + static_cast<std::int64_t>(kEventsOfPiece) >= piece.total) copies_.erase(local_rank);
  return piece;
}

RecordedEvents::Copy RecordedEvents::copy_of(const message::AskEvents& ask, std::size_t local_rank) const {
  constexpr std::int64_t kMost = contract::EventRing::kMaxCapacity;
  const auto latest = static_cast<std::ptrdiff_t>(std::clamp<std::int64_t>(ask.latest, 0, kMost));
  Copy copy;
  copy.id = ask.id;
  copy.now = nanoseconds(Clock::now());
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
  records_.record_timeline(static_cast<std::uint32_t>(std::min(events, kMost)));
}

void RecordedEvents::add_to(RankActivity& activity, std::size_t local_rank) {
  constexpr std::size_t kLatest = 16;
  constexpr double kNanoseconds = 1e9;
  const timeline::RingSnapshot ring = records_.events(local_rank, kLatest);
  const Clock::time_point now = Clock::now();
  std::int64_t last = 0;
  for (const contract::Event& event : ring.events) last = std::max({last, event.begin, event.end});
  if (last > 0) {
    const auto age = static_cast<double>(nanoseconds(now)) - static_cast<double>(last);
    activity.last_event = std::clamp(age / kNanoseconds, 0.0, kMaxSeconds);
  }
  if (ring.steps == 0) return;
  const auto [at, is_first] = steps_.try_emplace(local_rank, StepsSeen{now, ring.steps});
  StepsSeen& seen = at->second;
  const double seconds = std::chrono::duration<double>(now - seen.at).count();
  // Several looks may fall into one step.
  constexpr double kLongestStep = 30;
  if (!is_first && (ring.steps != seen.steps || seconds > kLongestStep)) {
    const double steps = static_cast<double>(ring.steps) - static_cast<double>(seen.steps);
    seen = {now, ring.steps, std::max(steps, 0.0) / std::max(seconds, 1e-9)};
  }
  activity.steps_per_second = std::min(seen.rate, kMaxSeconds);
}

}  // namespace ddl::launcher
