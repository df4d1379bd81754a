#include "launcher/head/generation_inspector.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ddl::launcher {
namespace {

// The agents look twice, and so see how much of a CPU a process uses.
const message::AskActivity kAskForHung{-1, 0.3, 0};
constexpr std::chrono::seconds kLookTime{2};

}  // namespace

GenerationInspector::GenerationInspector(EventLoop& loop, const JobSpec& spec, const std::string& job_id,
                                         Actions actions)
    : loop_(loop),
      spec_(spec),
      actions_(std::move(actions)),
      job_(describe_job(spec, job_id)),
      inspector_(
          loop, JobInspection{job_, {}, {}, {}},
          {[this](const message::AskActivity& question) { ask(question); },
           [this](int launch, const message::ForwardedAnswer& answer) { actions_.send(launch, answer); },
           [this] { return actions_.outcomes(); }, [this](JobDescription& job) { actions_.describe(job); },
           [](const message::ChangeTimeline&) -> Result<std::string> {
             return fail(ErrorCode::kUnavailable,
                         "a timeline is not offered for ranks that go on when others fail");
           }}) {}

void GenerationInspector::begin(int generation, std::vector<Place> ranks) {
  ranks_ = std::move(ranks);
  looked_at_.clear();
  look_timer_.cancel();
  launches_.clear();
  job_.generation = generation;
  job_.num_ranks = static_cast<int>(std::ssize(ranks_));
  job_.hosts.clear();
  JobInspection plan;
  StallInspector::Settings settings{spec_.stall_warning_seconds, spec_.stall_shutdown_seconds, {}, {}};
  std::vector<std::int64_t> processes;
  for (const Place& place : ranks_) {
    processes.push_back((std::int64_t{place.launch} << 32) + place.slot);
    auto node = std::find(launches_.begin(), launches_.end(), place.launch);
    if (node == launches_.end()) {
      node = launches_.insert(node, place.launch);
      plan.nodes.push_back({place.host, ""});
    }
    if (job_.hosts.empty() || job_.hosts.back() != place.host) job_.hosts.push_back(place.host);
    InspectedRank& rank = plan.ranks.emplace_back();
    rank.rank = static_cast<int>(std::ssize(plan.ranks)) - 1;
    rank.node = static_cast<int>(node - launches_.begin());
    settings.hosts.push_back(place.host);
    settings.nodes.push_back(rank.node);
  }
  plan.job = job_;
  inspector_.set_plan(std::move(plan), std::move(processes));
  stalls_ = std::make_unique<StallInspector>(
      loop_, std::move(settings),
      StallInspector::Actions{[this] { ask(kAskForStall); }, actions_.note, actions_.on_stall});
}

void GenerationInspector::ask(const message::AskActivity& question) {
  for (const int launch : launches_) actions_.send(launch, question);
}

void GenerationInspector::look_at(const std::vector<int>& ranks) {
  const std::size_t before = looked_at_.size();
  looked_at_.insert(ranks.begin(), ranks.end());
  if (looked_at_.size() == before) return;
  look_timer_ = loop_.after(kLookTime, [this] {
    for (const int rank : std::set(looked_at_)) on_looked(rank, "");
  });
  ask(kAskForHung);
}

void GenerationInspector::on_looked(int rank, const std::string& what) {
  if (looked_at_.erase(rank) > 0) actions_.on_looked(rank, what);
}

void GenerationInspector::on_gone(int launch) {
  const auto node = std::find(launches_.begin(), launches_.end(), launch);
  if (node != launches_.end())
    inspector_.on_lost(static_cast<int>(node - launches_.begin()), "its processes have ended");
}

void GenerationInspector::on(int launch, const message::Activity& activity) {
  const auto node = std::find(launches_.begin(), launches_.end(), launch);
  if (node == launches_.end()) return;
  message::Activity of_ranks{activity.id, {}, activity.usage, activity.times};
  for (int rank = 0; rank < std::ssize(ranks_); ++rank) {
    if (ranks_[rank].launch != launch) continue;
    const auto one = std::find_if(activity.ranks.begin(), activity.ranks.end(),
                                  [&](const RankActivity& other) { return other.rank == ranks_[rank].slot; });
    if (one == activity.ranks.end()) continue;
    of_ranks.ranks.push_back(*one);
    of_ranks.ranks.back().rank = rank;
  }
  const int number = static_cast<int>(node - launches_.begin());
  if (activity.id == kAskForHung.id) {
    for (const RankActivity& one : of_ranks.ranks) on_looked(one.rank, hanging_text(one));
    return;
  }
  if (activity.id == kAskForStall.id) return stalls_->on_activity(number, std::move(of_ranks.ranks));
  inspector_.on_activity(number, std::move(of_ranks));
}

void GenerationInspector::on(int launch, const message::Stalled&) {
  // Those of another launch wait for a generation.
  if (std::find(launches_.begin(), launches_.end(), launch) != launches_.end()) stalls_->on_stalled();
}

}  // namespace ddl::launcher
