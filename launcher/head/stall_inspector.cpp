#include "launcher/head/stall_inspector.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace ddl::launcher {
namespace {

/// A node that has not answered until then is left out.
constexpr auto kAnswerTime = std::chrono::seconds(2);

}  // namespace

StallInspector::StallInspector(EventLoop& loop, Settings settings, Actions actions)
    : loop_(loop),
      settings_(std::move(settings)),
      actions_(std::move(actions)),
      num_nodes_(std::set<int>(settings_.nodes.begin(), settings_.nodes.end()).size()) {}

void StallInspector::on_stalled() {
  if (std::exchange(is_asking_, true)) return;
  answers_.clear();
  limit_ = loop_.after(kAnswerTime, [this] { conclude(); });
  actions_.ask();
}

void StallInspector::on_activity(int node, std::vector<RankActivity> ranks) {
  if (!is_asking_) return;
  std::erase_if(ranks, [&](const RankActivity& one) {
    return one.rank < 0 || one.rank >= std::ssize(settings_.nodes) || settings_.nodes[one.rank] != node;
  });
  answers_[node] = std::move(ranks);
  if (answers_.size() == num_nodes_) conclude();
}

void StallInspector::conclude() {
  is_asking_ = false;
  limit_.cancel();
  std::vector<RankActivity> ranks;
  for (auto& [node, some] : answers_) {
    for (RankActivity& one : some) ranks.push_back(std::move(one));
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const RankActivity& a, const RankActivity& b) { return a.rank < b.rank; });
  const auto is_after = [](double seconds, double limit) { return limit > 0 && seconds >= limit; };
  const double least = std::min(settings_.warning_seconds > 0 ? settings_.warning_seconds : kMaxSeconds,
                                settings_.shutdown_seconds > 0 ? settings_.shutdown_seconds : kMaxSeconds);
  const std::vector<Stall> stalls = find_stalls(ranks, settings_.hosts, least);
  std::map<std::string, double> told;
  for (const Stall& stall : stalls) {
    if (is_after(stall.seconds, settings_.shutdown_seconds)) return actions_.end_job(stall);
    const auto before = told_.find(stall.key);
    // The wait may have lasted a little longer at the other nodes.
    constexpr double kAgain = 1.8;
    const bool is_new = before == told_.end() || stall.seconds < before->second;
    if (!is_new && stall.seconds < kAgain * before->second) {
      told.insert(*before);
      continue;
    }
    told[stall.key] = stall.seconds;
    if (sentences_.size() < kMostKept) sentences_.push_back(stall.sentence);
    actions_.note(stall.sentence);
  }
  told_ = std::move(told);
}

}  // namespace ddl::launcher
