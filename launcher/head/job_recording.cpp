#include "launcher/head/job_recording.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "launcher/plan/launch_plan.h"

namespace ddl::launcher {
namespace {

/// The collector of what ranks did last; those of timelines have the numbers that follow.
constexpr std::int64_t kHistoryId = 1;
/// Ranks other than the failed one whose last events are kept.
constexpr std::size_t kOtherHistories = 16;

}  // namespace

JobRecording::JobRecording(EventLoop& loop, std::vector<TimelineRank> ranks, Actions actions)
    : loop_(loop), ranks_(std::move(ranks)), actions_(std::move(actions)), next_id_(kHistoryId + 1) {}

Status JobRecording::plan_timeline(const std::string& path, std::uint64_t max_bytes) {
  if (timeline_)
    return fail(ErrorCode::kUnavailable, is_writing_ ? "the timeline is being written to " + path_
                                                     : "a timeline is recorded already, for " + path_ +
                                                           ": end it with ddlrun --timeline stop");
  TimelineRecorder::Settings settings{path, max_bytes, next_id_, ranks_};
  TimelineRecorder::Actions actions{[this](const message::AskEvents& question) { return ask(question); },
                                    [this](int rank) { return fate_of(rank); },
                                    [this](const std::string& sentence) { actions_.note(sentence); }};
  DDL_ASSIGN(timeline, TimelineRecorder::create(loop_, std::move(settings), std::move(actions)));
  timeline_ = std::move(timeline);
  next_id_ += 2;
  path_ = path;
  max_bytes_ = max_bytes;
  return {};
}

Result<std::string> JobRecording::change(const message::ChangeTimeline& request, const JobSpec& spec) {
  if (!request.starts) {
    if (!write_timeline([] {}))
      return fail(ErrorCode::kUnavailable, "no timeline is recorded: begin one with ddlrun --timeline start");
    return path_;
  }
  if (spec.starts_mpirun) {
    return fail(ErrorCode::kUnavailable,
                "mpirun has started the ranks, which no agent reads: give the job --timeline-filename when "
                "it starts");
  }
  const std::string own_name = "/ddlrun-" + std::to_string(::getpid()) + "-timeline.json";
  DDL_TRY(plan_timeline(request.path.empty() ? spec.workdir + own_name : request.path, spec.timeline_bytes));
  actions_.record({timeline::events_of_rank(spec.timeline_bytes, ranks_.size())});
  return path_;
}

bool JobRecording::write_timeline(std::function<void()> done) {
  if (!timeline_) return false;
  done_.push_back(std::move(done));
  if (std::exchange(is_writing_, true)) return true;
  timeline_->write([this](const std::string& failure) { on_written(failure); });
  return true;
}

void JobRecording::give_up() {
  if (!timeline_) return;
  const bool all_lost = std::all_of(ranks_.begin(), ranks_.end(),
                                    [this](const TimelineRank& rank) { return lost_.contains(rank.node); });
  actions_.note("no timeline was written to " + path_ +
                (all_lost ? ": the agents, which have it, were lost"
                          : ": the job did not end in order, so its agents were not asked for it"));
}

void JobRecording::on_written(const std::string& failure) {
  if (failure.empty()) {
    written_ = path_;
    actions_.note("the timeline is in " + path_ + ": open it at ui.perfetto.dev");
  } else {
    actions_.note("no timeline was written: " + failure);
    if (timeline_->has_events()) not_written_ = failure;
  }
  // Not from inside the recorder, which ends here.
  next_ = loop_.after(std::chrono::seconds(0), [this] {
    timeline_.reset();
    is_writing_ = false;
    actions_.record({0});
    for (const auto& done : std::exchange(done_, {})) done();
  });
}

void JobRecording::ask_for_histories() {
  if (history_collector_) return;
  std::vector<int> ranks;
  if (const auto failed = actions_.report().first_failure) ranks.push_back(*failed);
  const std::size_t most = ranks.size() + kOtherHistories;
  for (int rank = 0; rank < std::ssize(ranks_) && ranks.size() < most; ++rank) {
    if (ranks.empty() || rank != ranks.front()) ranks.push_back(rank);
  }
  const auto keep = [this](CollectedEvents&& one) {
    if (!one.ring.events.empty() || one.joining_since != 0)
      histories_.push_back({one.rank, one.now, std::move(one.ring.events), one.joining_since});
  };
  history_collector_.emplace(
      loop_, kHistoryId, false,
      EventCollector::Actions{[this](const message::AskEvents& question) { return ask(question); }, keep,
                              [] {}},
      ranks.size());
  history_collector_->start(ranks, RankHistory::kEvents);
}

bool JobRecording::ask(const message::AskEvents& question) {
  if (lost_.contains(ranks_[question.rank].node)) return false;
  actions_.ask(question);
  return true;
}

std::pair<std::int64_t, std::string> JobRecording::fate_of(int rank) const {
  const RankOutcome& outcome = actions_.report().ranks.at(rank);
  std::string fate;
  if (outcome.kind == RankOutcome::Kind::kExited)
    fate = "the rank exited with " + std::to_string(outcome.exit_code);
  if (outcome.kind == RankOutcome::Kind::kSignalled)
    fate = "the rank was ended by signal " + std::to_string(outcome.signal);
  return {outcome.pid, fate};
}

void JobRecording::on_events(const message::Events& piece) {
  if (history_collector_) history_collector_->on_events(piece);
  if (timeline_) timeline_->on_events(piece);
}

void JobRecording::on_lost(int node) {
  lost_.insert(node);
  const std::string why = "its host was lost";
  if (history_collector_)
    history_collector_->on_lost([&](int rank) { return ranks_[rank].node == node; }, why);
  if (timeline_) timeline_->on_lost(node, why);
}

void JobRecording::add_to(JobReport& report) {
  report.histories = std::move(histories_);
  report.timeline = written_;
  report.timeline_lost = not_written_;
}

}  // namespace ddl::launcher
