#include "report/scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

namespace ddl::report {

using launcher::RankOutcome;

namespace {

constexpr std::size_t kLeastPointsOfFit = 3;

/// Of the slowest rank; 0: a rank has counted no steps, or only one.
double step_seconds(const JobRecord& run) {
  double longest = 0;
  for (const RankOutcome& rank : run.report.ranks) {
    if (rank.calls.step_seconds <= 0) return 0;
    longest = std::max(longest, rank.calls.step_seconds.value);
  }
  return longest;
}

bool has_succeeded(const JobRecord& run) {
  return run.report.reason == launcher::EndReason::kSuccess && run.report.run_seconds > 0 &&
         !run.report.ranks.empty();
}

std::size_t used_hosts(const JobRecord& run) {
  std::set<std::string_view> hosts;
  for (const RankOutcome& rank : run.report.ranks) hosts.insert(rank.host);
  return hosts.size();
}

/// How far a point is from the smallest, between 0 and 1, and how much of its speed-up is missing there: their ratio is
/// the share of serial work.
double distance_of(const ScalingPoint& point) { return 1 - 1 / point.growth(); }
double missing_at(const ScalingPoint& point, ScalingKind kind) {
  return kind == ScalingKind::kStrong ? 1 / point.scaling.speedup() - 1 / point.growth()
                                      : 1 - point.efficiency(kind);
}

SerialFit fit_of(const std::vector<ScalingPoint>& points, ScalingKind kind) {
  double products = 0, squares = 0;
  for (const ScalingPoint& point : points) {
    products += missing_at(point, kind) * distance_of(point);
    squares += distance_of(point) * distance_of(point);
  }
  SerialFit fit;
  fit.serial_share = std::clamp(squares > 0 ? products / squares : 0, 0.0, 1.0);
  for (const ScalingPoint& point : points) {
    const double measured = point.speedup(kind);
    fit.largest_error =
        std::max(fit.largest_error, std::fabs(fit.speedup(kind, point.growth()) - measured) / measured);
  }
  return fit;
}

}  // namespace

const char* text_of(ScalingKind kind) { return kind == ScalingKind::kStrong ? "strong" : "weak"; }

std::string span_text(double seconds) {
  if (seconds >= 1) return launcher::duration_text(seconds);
  return seconds >= 0.001 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} us", 1e6 * seconds);
}

double SerialFit::speedup(ScalingKind kind, double growth) const {
  return kind == ScalingKind::kStrong ? 1 / (serial_share + (1 - serial_share) / growth)
                                      : growth - serial_share * (growth - 1);
}

ScalingResult result_of(const ScalingStudy& study) {
  ScalingResult result;
  result.kind = study.kind;
  result.runs = study.runs.size();
  std::vector<const JobRecord*> runs;
  for (const JobRecord& run : study.runs) (has_succeeded(run) ? runs : result.failures).push_back(&run);
  result.by_steps =
      !runs.empty() && std::ranges::all_of(runs, [](const JobRecord* run) { return step_seconds(*run) > 0; });
  const auto seconds_of = [&](const JobRecord* run) {
    return result.by_steps ? step_seconds(*run) : run->report.run_seconds;
  };
  std::map<std::size_t, std::vector<const JobRecord*>> by_ranks;
  for (const JobRecord* const run : runs) by_ranks[run->report.ranks.size()].push_back(run);
  for (auto& [ranks, of] : by_ranks) {
    std::ranges::stable_sort(of, std::less(), seconds_of);
    const JobRecord* const median = of[(of.size() - 1) / 2];
    ScalingPoint point;
    point.scaling.ranks = static_cast<int>(ranks);
    point.scaling.seconds = seconds_of(median);
    const Scaling& base = result.points.empty() ? point.scaling : result.points.front().scaling;
    point.scaling.base_ranks = base.ranks;
    point.scaling.base_seconds = base.seconds;
    point.runs = of.size();
    point.fastest = seconds_of(of.front());
    point.slowest = seconds_of(of.back());
    point.hosts = used_hosts(*median);
    point.times = times_of(median->report);
    result.points.push_back(std::move(point));
  }
  if (result.points.size() >= kLeastPointsOfFit) result.fit = fit_of(result.points, study.kind);
  return result;
}

}  // namespace ddl::report
