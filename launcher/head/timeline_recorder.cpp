#include "launcher/head/timeline_recorder.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

namespace ddl::launcher {
Result<std::unique_ptr<TimelineRecorder>> TimelineRecorder::create(EventLoop& loop, Settings settings,
                                                                   Actions actions) {
  DDL_ASSIGN(file, timeline::TraceFile::create(settings.path));
  return std::unique_ptr<TimelineRecorder>(
      new TimelineRecorder(loop, std::move(file), std::move(settings), std::move(actions)));
}

TimelineRecorder::TimelineRecorder(EventLoop& loop, timeline::TraceFile file, Settings settings,
                                   Actions actions)
    : loop_(loop),
      file_(std::move(file)),
      max_bytes_(settings.max_bytes),
      next_id_(settings.first_id),
      ranks_(std::move(settings.ranks)),
      actions_(std::move(actions)) {}

void TimelineRecorder::write(std::function<void(const std::string&)> done) {
  done_ = std::move(done);
  int nodes = 0;
  for (const TimelineRank& rank : ranks_) nodes = std::max(nodes, rank.node + 1);
  clocks_.resize(nodes);
  collect(
      0,
      [this](CollectedEvents&& events) {
        if (!events.missing.empty()) missing_ = events.missing;
        // Only when its first event began is of interest.
        timeline::RingSnapshot ring = std::move(events.ring);
        ring.events.clear();
        if (events.earliest > 0) {
          ring.events.emplace_back().begin = events.earliest;
          has_events_ = true;
        }
        clocks_[ranks_[events.rank].node].add(events.rank, ring);
      },
      [this] { begin_file(); });
}

void TimelineRecorder::collect(std::int64_t latest, std::function<void(CollectedEvents&&)> on_rank,
                               std::function<void()> on_done) {
  std::vector<int> all(ranks_.size());
  std::iota(all.begin(), all.end(), 0);
  collector_.emplace(loop_, next_id_++, true,
                     EventCollector::Actions{actions_.ask, std::move(on_rank), std::move(on_done)});
  collector_->start(std::move(all), latest);
}

void TimelineRecorder::begin_file() {
  // A program that writes a timeline of its own under this name keeps it.
  if (!has_events_)
    return end(missing_.empty() ? "no rank has begun a call of libddl while it was recorded"
                                : "nothing could be read of the ranks: " + missing_);
  aligned_ = timeline::align_clocks(clocks_);
  timeline::TraceJob job;
  for (int node = 0; node < std::ssize(clocks_); ++node) {
    const auto on_node = std::find_if(ranks_.begin(), ranks_.end(),
                                      [node](const TimelineRank& rank) { return rank.node == node; });
    job.hosts.push_back({on_node == ranks_.end() ? "" : on_node->host, aligned_->hosts[node]});
  }
  job.ranks = ranks_.size();
  job.origin = aligned_->origin;
  job.max_bytes = max_bytes_;
  if (const auto begun = file_.begin(job); !begun) return end(begun.error().message());
  collect(
      contract::EventRing::kMaxCapacity, [this](CollectedEvents&& events) { add(std::move(events)); },
      [this] { finish(); });
}

void TimelineRecorder::add(CollectedEvents&& events) {
  if (!failure_.empty()) return;
  const TimelineRank& rank = ranks_[events.rank];
  timeline::RankTrace trace;
  trace.rank = events.rank;
  trace.host = rank.host;
  std::tie(trace.pid, trace.fate) = actions_.fate_of(events.rank);
  trace.missing = std::move(events.missing);
  trace.ring = std::move(events.ring);
  trace.read_at = events.now;
  trace.clock = aligned_->hosts[rank.node];
  if (const auto added = file_.add(trace); !added) failure_ = added.error().message();
}

void TimelineRecorder::finish() {
  if (!failure_.empty()) return end(failure_);
  const auto sentences = file_.finish();
  if (!sentences) return end(sentences.error().message());
  for (const std::string& sentence : *sentences) actions_.note(sentence);
  end("");
}

void TimelineRecorder::end(const std::string& failure) {
  // done() may destroy this.
  const auto done = std::exchange(done_, nullptr);
  if (done) done(failure);
}

void TimelineRecorder::on_events(const message::Events& piece) {
  if (collector_) collector_->on_events(piece);
}

void TimelineRecorder::on_lost(int node, const std::string& why) {
  if (!collector_) return;
  collector_->on_lost([&](int rank) { return ranks_[rank].node == node; }, why);
}

}  // namespace ddl::launcher
