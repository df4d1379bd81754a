#include "launcher/head/rank_totals.h"

#include <algorithm>
#include <set>

namespace ddl::launcher {
namespace {

/// Of calls of the same kind; null: there is none.
template <class Sums>
auto* find_sum(Sums& sums, const CallSum& like) {
  const auto found = std::ranges::find_if(
      sums, [&](const CallSum& one) { return one.kind == like.kind && one.is_named == like.is_named; });
  return found == sums.end() ? nullptr : &*found;
}

/// Whether another program of the rank has begun to count. Times are no sign of it: a wait is told while it lasts, and may
/// turn out to be shorter.
bool has_fallen(const RankCalls& last, const RankCalls& now) {
  if (now.steps < last.steps) return true;
  return std::ranges::any_of(now.sums, [&](const CallSum& sum) {
    const CallSum* const before = find_sum(last.sums, sum);
    return before != nullptr && (sum.calls < before->calls || sum.bytes < before->bytes);
  });
}

}  // namespace

RankTotals::Counts RankTotals::since(const Counts& last, const Counts& now) {
  Counts more = now;
  const bool is_other = now.pid != last.pid && now.cpu_seconds < last.cpu_seconds;
  if (last.cpu_seconds >= 0 && !is_other)
    more.cpu_seconds = std::max(now.cpu_seconds - last.cpu_seconds, 0.0);
  if (has_fallen(last.calls, now.calls)) return more;
  more.calls.steps -= last.calls.steps;
  for (CallSum& sum : more.calls.sums) {
    const CallSum* const before = find_sum(last.calls.sums, sum);
    if (before == nullptr) continue;
    sum.calls -= before->calls;
    sum.bytes -= before->bytes;
    sum.seconds = std::max(sum.seconds - before->seconds, 0.0);
    sum.wait_seconds = std::clamp<double>(sum.wait_seconds - before->wait_seconds, 0, sum.seconds);
  }
  return more;
}

void RankTotals::add(const Counts& more, Counts& total) {
  if (more.cpu_seconds >= 0) total.cpu_seconds = std::max<double>(total.cpu_seconds, 0) + more.cpu_seconds;
  total.calls.steps += more.calls.steps;
  for (const CallSum& sum : more.calls.sums) {
    CallSum* const known = find_sum(total.calls.sums, sum);
    if (known == nullptr) {
      total.calls.sums.push_back(sum);
      continue;
    }
    known->calls += sum.calls;
    known->bytes += sum.bytes;
    known->seconds = known->seconds + sum.seconds;
    known->wait_seconds = known->wait_seconds + sum.wait_seconds;
  }
}

void RankTotals::apply(JobInspection& job, const std::vector<std::int64_t>& processes) {
  std::set<Place> present;
  for (InspectedRank& rank : job.ranks) {
    const auto number = static_cast<std::size_t>(rank.rank);
    const std::int64_t process = number < processes.size() ? processes[number] : rank.rank;
    const Place place{job.nodes[static_cast<std::size_t>(rank.node)].name, rank.rank};
    present.insert(place);
    Counts& total = totals_[place];
    Counts now{rank.pid, rank.process.cpu_seconds, rank.calls};
    Counts& last = last_[process];
    // A process that has ended, or whose host is silent, is not known any more.
    if (now.cpu_seconds < 0) {
      now.pid = last.pid;
      now.cpu_seconds = last.cpu_seconds;
    }
    if (now.calls.sums.empty() && now.calls.steps == 0) now.calls = last.calls;
    add(since(last, now), total);
    last = now;
    rank.process.cpu_seconds = total.cpu_seconds;
    rank.calls.steps = total.calls.steps;
    rank.calls.sums = total.calls.sums;
  }
  for (const auto& [place, total] : totals_) {
    const auto node = std::ranges::find(job.nodes, place.first, &InspectedNode::name);
    if (node == job.nodes.end() || present.contains(place)) continue;
    InspectedRank& former = job.ranks.emplace_back();
    former.rank = place.second;
    former.node = static_cast<int>(node - job.nodes.begin());
    former.state = InspectedRank::State::kFormer;
    former.process.cpu_seconds = total.cpu_seconds;
    former.calls.steps = total.calls.steps;
    former.calls.sums = total.calls.sums;
  }
}

}  // namespace ddl::launcher
