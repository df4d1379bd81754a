// What a scaling study says: its verdict, and its sections.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/charts.h"
#include "report/section.h"
#include "report/verdict.h"

namespace ddl::report {
namespace {

using launcher::duration_text;

constexpr double kGoodEfficiency = 0.8;

/// The largest number of ranks up to which the efficiency is good.
int largest_good(const ScalingResult& result) {
  int ranks = result.points.front().scaling.ranks;
  for (const ScalingPoint& point : result.points) {
    if (point.efficiency(result.kind) < kGoodEfficiency) break;
    ranks = point.scaling.ranks;
  }
  return ranks;
}

Finding of_speedup(const ScalingResult& result) {
  const ScalingPoint& largest = result.points.back();
  const int base = largest.scaling.base_ranks;
  const double efficiency = largest.efficiency(result.kind);
  const bool is_strong = result.kind == ScalingKind::kStrong;
  Finding finding;
  finding.what = fmt::format("{} {} {:.2f} times {} {}, and ideally {:.3g} times: an efficiency of {}.",
                             counted(largest.scaling.ranks, "rank"), is_strong ? "are" : "do",
                             largest.speedup(result.kind), is_strong ? "as fast as" : "the work of", base,
                             largest.growth(), percent_text(efficiency));
  if (efficiency >= kGoodEfficiency) return finding;
  finding.weight = Finding::Weight::kLoss;
  const int good = largest_good(result);
  finding.advice = good == base
                       ? "no larger number of ranks is 80 % efficient; see where the time goes"
                       : fmt::format("up to {} the efficiency is 80 % or more", counted(good, "rank"));
  return finding;
}

/// What grows most with the ranks: the share of waiting or of moving.
void add_growth(const ScalingResult& result, std::vector<Finding>& findings) {
  constexpr double kMuch = 0.05;
  const RankTimes& least = result.points.front().times.mean;
  const RankTimes& most = result.points.back().times.mean;
  if (!result.points.back().times.has_calls || least.run <= 0 || most.run <= 0) return;
  const double wait = most.wait / most.run, move = most.move / most.run;
  const double more_wait = wait - least.wait / least.run, more_move = move - least.move / least.run;
  if (std::max(more_wait, more_move) < kMuch) return;
  const std::string of = counted(result.points.back().scaling.ranks, "rank");
  const int base = result.points.front().scaling.ranks;
  findings.push_back(
      more_wait >= more_move
          ? Finding{Finding::Weight::kLoss,
                    fmt::format("With {}, waiting for each other takes {} of the time; with {}, {}.", of,
                                percent_text(wait), base, percent_text(least.wait / least.run)),
                    "--report-dir writes a page of each run, which names the rank that is late"}
          : Finding{Finding::Weight::kLoss,
                    fmt::format("With {}, moving data takes {} of the time; with {}, {}.", of,
                                percent_text(move), base, percent_text(least.move / least.run)),
                    "give each rank more work between its calls, or overlap them: named tensors are executed "
                    "beside the computing"});
}

void add_fit(const ScalingResult& result, std::vector<Finding>& findings) {
  if (!result.fit) return;
  constexpr double kPoor = 0.25;
  const SerialFit& fit = *result.fit;
  if (fit.largest_error > kPoor) {
    findings.push_back({Finding::Weight::kFact,
                        fmt::format("{} does not describe these times: it misses them by up to {}.",
                                    result.law(), percent_text(fit.largest_error)),
                        ""});
    return;
  }
  std::string what = fmt::format("{} with {} of serial work fits within {}", result.law(),
                                 percent_text(fit.serial_share), percent_text(fit.largest_error));
  if (result.kind == ScalingKind::kStrong && fit.serial_share >= 0.001)
    what += fmt::format("; by it, no number of ranks is more than {:.3g} times as fast as {}",
                        1 / fit.serial_share, result.points.front().scaling.ranks);
  findings.push_back({Finding::Weight::kFact, what + ".", ""});
}

void add_spread(const ScalingResult& result, std::vector<Finding>& findings) {
  constexpr double kNoisy = 0.1;
  const auto spread_of = [](const ScalingPoint& point) {
    return (point.slowest - point.fastest) / point.scaling.seconds;
  };
  const auto worst = std::ranges::max_element(result.points, std::less(), spread_of);
  if (spread_of(*worst) < kNoisy) return;
  findings.push_back(
      {Finding::Weight::kLoss,
       fmt::format("The {} with {} differ by {}.", counted(static_cast<std::int64_t>(worst->runs), "run"),
                   counted(worst->scaling.ranks, "rank"), percent_text(spread_of(*worst))),
       "use nodes on which nothing else runs (--exclusive), or more runs (--repeat)"});
}

Section speedups(const ScalingResult& result) {
  Section section("Speed-up");
  if (result.points.empty()) return section.not_measured("no run has succeeded");
  section.draw(speedup_chart(result));
  std::vector<Section::Row> rows;
  for (const ScalingPoint& point : result.points) {
    rows.push_back({fmt::format("{}", point.scaling.ranks), fmt::format("{}", point.hosts),
                    fmt::format("{}", point.runs), span_text(point.scaling.seconds),
                    span_text(point.fastest) + " – " + span_text(point.slowest),
                    fmt::format("{:.2f}", point.speedup(result.kind)),
                    percent_text(point.efficiency(result.kind))});
  }
  section.table({"Ranks", "hosts", "runs", "median time", "fastest – slowest", "speed-up", "efficiency"},
                rows, 0);
  section.note(
      result.by_steps
          ? "Times are those of a training step: the mean from the end of the first one to that of the "
            "last. The start of the program does not count."
          : "Times are those of whole runs, with the start of the program: not every rank has made steps "
            "of named tensors.");
  if (result.kind == ScalingKind::kStrong) {
    section.note("All runs are said to do the same work: ideally, twice the ranks take half the time.");
  } else {
    section.note(
        "Each rank is said to do the same work in all runs: ideally, the time does not change. The speed-up "
        "is "
        "the work that is done in the same time.");
  }
  if (!result.fit) section.note(fmt::format("{} is fitted to three numbers of ranks or more.", result.law()));
  return section;
}

Section where_time_went(const ScalingResult& result) {
  Section section("Where the time went");
  std::string chart = sizes_chart(result);
  if (chart.empty())
    return section.not_measured("the program has made no calls by libddl, or ended before they were read");
  section.draw(std::move(chart));
  std::vector<Section::Row> rows;
  for (const ScalingPoint& point : result.points) {
    const RankTimes& mean = point.times.mean;
    if (mean.run <= 0) continue;
    rows.push_back({fmt::format("{}", point.scaling.ranks), percent_text(mean.compute / mean.run),
                    percent_text(mean.wait / mean.run), percent_text(mean.move / mean.run),
                    percent_text(point.times.efficiency.load_balance),
                    percent_text(point.times.efficiency.communication)});
  }
  section.table({"Ranks", "compute", "wait", "move", "load balance", "communication"}, rows, 0);
  section.note(
      "Of the median run, as shares of the mean rank's time. Full: compute. Hollow: wait. Lower half: move.");
  return section;
}

Section runs(const ScalingStudy& study) {
  Section section("All runs");
  std::vector<Section::Row> rows;
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const JobRecord& run = study.runs[i];
    double step = 0;
    for (const launcher::RankOutcome& rank : run.report.ranks)
      step = std::max(step, rank.calls.step_seconds.value);
    rows.push_back({fmt::format("{}", i + 1), fmt::format("{}", run.num_ranks),
                    duration_text(run.report.run_seconds), step > 0 ? span_text(step) : "",
                    fmt::format("{}", run.report.exit_code)});
  }
  section.table({"Run", "ranks", "time", "step", "exit code"}, rows, 0);
  for (const JobRecord& run : study.runs) {
    if (!run.said.empty())
      section.quote(fmt::format("What ddlrun said of a run with {}:", counted(run.num_ranks, "rank")),
                    run.said);
  }
  return section;
}

}  // namespace

std::vector<Finding> verdict(const ScalingResult& result) {
  std::vector<Finding> findings;
  if (!result.failures.empty()) {
    const JobRecord& first = *result.failures.front();
    findings.push_back(
        {Finding::Weight::kFailure,
         fmt::format("{} of {} failed; the first, with {}, with exit code {}.", result.failures.size(),
                     counted(static_cast<std::int64_t>(result.runs), "run"), counted(first.num_ranks, "rank"),
                     first.report.exit_code),
         "see what ddlrun said of it, below"});
  }
  if (result.points.size() < 2) {
    findings.push_back({Finding::Weight::kLoss, "There are no two numbers of ranks to compare.",
                        "give --scaling numbers with which the program runs"});
    return findings;
  }
  findings.push_back(of_speedup(result));
  add_growth(result, findings);
  add_fit(result, findings);
  add_spread(result, findings);
  return findings;
}

std::vector<Section> sections_of_scaling(const ScalingStudy& study, const ScalingResult& result) {
  return {speedups(result), where_time_went(result), runs(study), software_of(study.runs.front())};
}

}  // namespace ddl::report
