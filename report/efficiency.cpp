#include "report/efficiency.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace ddl::report {

using launcher::RankOutcome;

std::string percent_text(double share) {
  return share < 0.0995 ? fmt::format("{:.1f} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

RankTimes times_of(const RankOutcome& rank) {
  double ordered = 0, ordered_wait = 0, named_wait = 0;
  for (const launcher::CallSum& sum : rank.calls.sums) {
    if (!sum.is_named) ordered += sum.seconds;
    (sum.is_named ? named_wait : ordered_wait) += sum.wait_seconds;
  }
  // Of the waits in calls for named tensors, at most those count in which the program waited, too.
  const double tensors = rank.calls.tensor_wait_seconds;
  RankTimes times;
  times.rank = rank.rank;
  times.run = rank.run_seconds;
  const double inside = std::min(ordered + tensors, times.run);
  times.wait = std::min(ordered_wait + std::min(named_wait, tensors), inside);
  times.move = inside - times.wait;
  times.compute = times.run - inside;
  return times;
}

double lost_share(const RankOutcome& rank) {
  double slept = 0;
  for (const launcher::CallSum& sum : rank.calls.sums) slept += sum.wait_seconds;
  return slept > 0 ? times_of(rank).wait / slept : 1;
}

namespace {

/// By the ranks that were waited for, what each of the others has slept for it.
std::vector<LateRank> late_ranks(const std::vector<RankOutcome>& ranks, double mean_run) {
  std::map<int, double> seconds;
  for (const RankOutcome& rank : ranks) {
    const double lost = lost_share(rank);
    for (const launcher::AwaitedRank& awaited : rank.calls.awaited)
      seconds[awaited.rank] += lost * awaited.seconds;
  }
  const double others = std::max<double>(static_cast<double>(ranks.size()) - 1, 1);
  std::vector<LateRank> late;
  for (const auto& [rank, sum] : seconds)
    late.push_back({rank, sum / others, mean_run > 0 ? sum / others / mean_run : 0});
  std::ranges::stable_sort(late, std::ranges::greater(), &LateRank::seconds);
  return late;
}

}  // namespace

JobTimes times_of(const launcher::JobReport& report) {
  JobTimes times;
  for (const RankOutcome& rank : report.ranks) {
    times.has_calls = times.has_calls || !rank.calls.sums.empty();
    if (rank.run_seconds > 0) times.ranks.push_back(times_of(rank));
  }
  if (times.ranks.empty()) return times;
  double longest_compute = 0;
  for (const RankTimes& one : times.ranks) {
    times.mean.run += one.run;
    times.mean.compute += one.compute;
    times.mean.wait += one.wait;
    times.mean.move += one.move;
    longest_compute = std::max(longest_compute, one.compute);
    times.longest_run = std::max(times.longest_run, one.run);
  }
  const auto count = static_cast<double>(times.ranks.size());
  for (double* const sum : {&times.mean.run, &times.mean.compute, &times.mean.wait, &times.mean.move})
    *sum /= count;
  if (longest_compute > 0) times.efficiency.load_balance = times.mean.compute / longest_compute;
  if (times.longest_run > 0) times.efficiency.communication = longest_compute / times.longest_run;
  times.late = late_ranks(report.ranks, times.mean.run);
  return times;
}

}  // namespace ddl::report
