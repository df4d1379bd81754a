#include "cli/reports/scaling_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/reports/job_report.h"
#include "contract/version.h"
#include "report/verdict.h"

namespace ddl::cli {

using nlohmann::ordered_json;
using report::percent_text;
using report::ScalingPoint;
using report::ScalingResult;

std::string scaling_text(const report::ScalingStudy& study, const TerminalStyle& style) {
  const ScalingResult result = report::result_of(study);
  std::string text;
  if (!result.points.empty()) {
    text +=
        style.strong(fmt::format("ddlrun: {} scaling of {}, by the time of {}", report::text_of(study.kind),
                                 study.runs.front().name, result.by_steps ? "a step" : "a run")) +
        "\n";
    text +=
        style.faint(fmt::format("{:>7} {:>6} {:>5} {:>14} {:>9} {:>11} {:>9} {:>7} {:>7}", "ranks", "hosts",
                                "runs", "median time", "speed-up", "efficiency", "compute", "wait", "move")) +
        "\n";
  }
  for (const ScalingPoint& point : result.points) {
    const report::RankTimes& mean = point.times.mean;
    const auto share = [&](double seconds) {
      return point.times.has_calls && mean.run > 0 ? percent_text(seconds / mean.run) : std::string("-");
    };
    text += fmt::format("{:>7} {:>6} {:>5} {:>14} {:>9.2f} {:>11} {:>9} {:>7} {:>7}\n", point.scaling.ranks,
                        point.hosts, point.runs, report::span_text(point.scaling.seconds),
                        point.speedup(study.kind), percent_text(point.efficiency(study.kind)),
                        share(mean.compute), share(mean.wait), share(mean.move));
  }
  for (const report::Finding& finding : report::verdict(result)) {
    text += "ddlrun: " + finding.what + "\n";
    if (!finding.advice.empty()) text += style.faint("        next: " + finding.advice) + "\n";
  }
  return text;
}

std::string scaling_json(const report::ScalingStudy& study, int exit_code) {
  const ScalingResult result = report::result_of(study);
  ordered_json points = ordered_json::array(), failures = ordered_json::array();
  for (const ScalingPoint& point : result.points) {
    const report::RankTimes& mean = point.times.mean;
    points.push_back(
        {{"ranks", point.scaling.ranks},
         {"hosts", point.hosts},
         {"runs", point.runs},
         {"seconds", point.scaling.seconds},
         {"fastest_seconds", point.fastest},
         {"slowest_seconds", point.slowest},
         {"speedup", point.speedup(study.kind)},
         {"efficiency", point.efficiency(study.kind)},
         {"rank_seconds",
          {{"run", mean.run}, {"compute", mean.compute}, {"wait", mean.wait}, {"move", mean.move}}}});
  }
  for (const report::JobRecord* const run : result.failures)
    failures.push_back({{"ranks", run->num_ranks},
                        {"exit_code", run->report.exit_code},
                        {"message", text_or_null(run->report.message)}});
  ordered_json json{{"ddlrun", contract::kVersion},
                    {"kind", "scaling_report"},
                    {"exit_code", exit_code},
                    {"scaling", report::text_of(study.kind)},
                    {"by", result.by_steps ? "step" : "run"},
                    {"points", std::move(points)},
                    {"failures", std::move(failures)},
                    {"fit", nullptr}};
  if (result.fit)
    json["fit"] = {{"law", study.kind == report::ScalingKind::kStrong ? "amdahl" : "gustafson"},
                   {"serial_share", result.fit->serial_share},
                   {"largest_error", result.fit->largest_error}};
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ddl::cli
