#include "launcher/node/rank_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "contract/event_ring.h"
#include "launcher/node/rank_process.h"
#include "launcher/process/process_state.h"
#include "timeline/event_ring.h"

namespace ddl::launcher {

void RankWatch::prepare(const JobLaunch& job, const NodeLaunch& node) {
  using contract::EventRing;
  ranks_.clear();
  for (const RankLaunch& launch : node.ranks) ranks_.push_back(launch.rank);
  limits_ = {job.stall_warning_seconds, job.stall_shutdown_seconds};
  const bool has_timeline = job.timeline_events > 0;
  const std::uint32_t kept =
      timeline::ring_capacity(std::max<std::uint64_t>(job.timeline_events, EventRing::kUsuallyKept));
  // There is room for a timeline that begins later; it costs nothing until then.
  auto records = RankRecords::create(ranks_.size(), EventRing::kMaxCapacity, kept, has_timeline);
  if (!records) return;
  records_.emplace(std::move(*records));
  events_.emplace(*records_, ranks_.size());
}

std::size_t RankWatch::local_rank(int rank) const {
  return std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin();
}

void RankWatch::has_ended(int rank) {
  processes_[rank].ended = true;
  if (events_) events_->has_ended(local_rank(rank));
}

std::int64_t RankWatch::pid_of(int rank) const {
  const auto process = processes_.find(rank);
  return process == processes_.end() ? 0 : process->second.pid;
}

int RankWatch::gone_rank(int rank) const { return records_ ? records_->gone_rank(local_rank(rank)) : -1; }

RankCalls RankWatch::calls(int rank) const {
  return records_ ? records_->calls(local_rank(rank)) : RankCalls();
}

void RankWatch::watch_for_stalls() {
  stall_watch_.emplace(limits_);
  watched_since_ = StallWatch::Clock::now();
  if (records_ && stall_watch_->has_limits()) look_for_stalls();
}

void RankWatch::look_for_stalls() {
  if (const auto seconds = stall_watch_->due(activities())) report_(message::Stalled{*seconds});
  stall_timer_ = loop_.after(stall_watch_->pause(), [this] { look_for_stalls(); });
}

std::vector<RankActivity> RankWatch::activities() {
  std::vector<RankActivity> all;
  for (std::size_t place = 0; stall_watch_ && place < ranks_.size(); ++place) {
    Process& process = processes_[ranks_[place]];
    const RankSnapshot now = records_ ? records_->read(place) : RankSnapshot();
    RankActivity& activity =
        all.emplace_back(stall_watch_->look(ranks_[place], now, StallWatch::Clock::now()));
    if (process.ended) continue;
    add_process(activity, now, process.pid);
    compare(process, activity.process);
    if (events_) events_->add_to(activity, place, {now.phase_since, watched_since_});
  }
  return all;
}

void RankWatch::compare(Process& process, ProcessActivity& now) {
  // The kernel counts CPU time by ticks of 10 ms.
  constexpr double kLeastSeconds = 0.1;
  const auto time = StallWatch::Clock::now();
  const double seconds = std::chrono::duration<double>(time - process.looked_at).count();
  if (process.cpu_seconds < 0 || seconds >= kLeastSeconds) {
    if (process.cpu_seconds >= 0 && now.cpu_seconds >= process.cpu_seconds)
      process.cpu_share = (now.cpu_seconds - process.cpu_seconds) / seconds;
    process.cpu_seconds = now.cpu_seconds;
    process.looked_at = time;
  }
  now.cpu_share = process.cpu_share;
}

void RankWatch::on(const message::AskActivity& ask) {
  const std::int64_t received_ns = wall_time_ns();
  if (ask.pause_seconds <= 0) return report_activity(ask, received_ns);
  (void)activities();
  activity_timer_ = loop_.after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                    std::chrono::duration<double>(ask.pause_seconds)),
                                [this, ask, received_ns] { report_activity(ask, received_ns); });
}

void RankWatch::report_activity(const message::AskActivity& ask, std::int64_t received_ns) {
  message::Activity answer{ask.id, activities(), ask.counts ? usage_() : NodeUsage()};
  const std::size_t most = std::max(ask.max_tensors, 0);
  for (RankActivity& one : answer.ranks) {
    one.tensors.resize(std::min(one.tensors.size(), most));
    if (ask.counts) {
      RankCalls& told = told_calls_[one.rank];
      told = without_fall(calls(one.rank), told);
      told.awaited.clear();
      one.calls = told;
    } else if (one.pid != 0) {
      one.process.wait = read_kernel_wait(static_cast<pid_t>(one.pid));
    }
  }
  answer.times = {received_ns, wall_time_ns()};
  report_(std::move(answer));
}

void RankWatch::on(const message::AskEvents& ask) {
  const std::size_t place = local_rank(ask.rank);
  if (events_ && place < ranks_.size()) return report_(events_->answer(ask, place));
  report_(message::events_message(ask, {}, 0));
}

void RankWatch::on(const message::RecordTimeline& message) {
  if (events_) events_->record_timeline(message.events);
}

}  // namespace ddl::launcher
