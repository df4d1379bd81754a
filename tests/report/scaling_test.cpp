#include "report/scaling.h"

#include "report/page.h"
#include "report/record_fixture.h"
#include "report/verdict.h"
#include "support/catch.h"

using namespace ddl::test;
using Catch::Matchers::Contains;
using ddl::report::JobRecord;
using ddl::report::result_of;
using ddl::report::ScalingKind;
using ddl::report::ScalingPoint;
using ddl::report::ScalingResult;
using ddl::report::ScalingStudy;

namespace {

/// Ranks that wait for a tenth of the time, and move for another tenth.
JobRecord run_of(int ranks, double seconds, double step_seconds = 0) {
  JobRecord record;
  record.name = "train";
  record.command = {"./train"};
  record.num_ranks = ranks;
  record.report = report_of(EndReason::kSuccess, 0, {});
  record.report.run_seconds = seconds;
  for (int rank = 0; rank < ranks; ++rank) {
    RankOutcome outcome = exited(rank, 0, seconds);
    outcome.host = rank < 4 ? "node1" : "node2";
    outcome.calls.sums = {{"allreduce", false, 10, 40, 0.2 * seconds, 0.1 * seconds}};
    outcome.calls.steps = step_seconds > 0 ? 100 : 0;
    outcome.calls.step_seconds = step_seconds;
    record.report.ranks.push_back(outcome);
  }
  return record;
}

ScalingStudy study_of(ScalingKind kind, std::vector<JobRecord> runs) { return {kind, std::move(runs)}; }

}  // namespace

TEST_CASE("speed-ups and efficiencies are those of a table computed by hand") {
  const ScalingStudy study =
      study_of(ScalingKind::kStrong, {run_of(8, 25), run_of(1, 100), run_of(1, 120), run_of(1, 96),
                                      run_of(2, 62.5), run_of(4, 40), run_of(8, 20), run_of(8, 24)});
  const ScalingResult result = result_of(study);
  CHECK_FALSE(result.by_steps);
  REQUIRE(result.points.size() == 4);
  const ScalingPoint& least = result.points.front();
  CHECK(least.scaling.seconds == 100);
  CHECK(least.runs == 3);
  CHECK(least.fastest == 96);
  CHECK(least.slowest == 120);
  CHECK(result.points[1].speedup(ScalingKind::kStrong) == Approx(1.6));
  CHECK(result.points[1].efficiency(ScalingKind::kStrong) == Approx(0.8));
  const ScalingPoint& most = result.points.back();
  CHECK(most.scaling.seconds == 24);
  CHECK(most.hosts == 2);
  CHECK(most.speedup(ScalingKind::kStrong) == Approx(100.0 / 24));
  CHECK(most.efficiency(ScalingKind::kStrong) == Approx(100.0 / 24 / 8));

  const auto findings = ddl::report::verdict(result);
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].what ==
        "8 ranks are 4.17 times as fast as 1, and ideally 8 times: an efficiency of 52 %.");
  CHECK(findings[0].advice == "up to 2 ranks the efficiency is 80 % or more");
  CHECK_THAT(findings[1].what, Contains("Amdahl's law with "));
  CHECK(findings[2].what == "The 3 runs with 1 rank differ by 24 %.");
}

TEST_CASE("a law is found in times that follow it") {
  std::vector<JobRecord> strong, weak;
  for (const int ranks : {2, 4, 8, 16, 32}) {
    const double growth = ranks / 2.0;
    strong.push_back(run_of(ranks, 100 * (0.1 + 0.9 / growth)));
    weak.push_back(run_of(ranks, 100 * growth / (growth - 0.1 * (growth - 1))));
  }
  for (const auto& [kind, runs] : {std::pair(ScalingKind::kStrong, strong), {ScalingKind::kWeak, weak}}) {
    const ScalingStudy study = study_of(kind, runs);
    const ScalingResult result = result_of(study);
    REQUIRE(result.fit);
    CHECK(result.fit->serial_share == Approx(0.1));
    CHECK(result.fit->largest_error < 1e-9);
    CHECK(result.fit->speedup(kind, 1) == Approx(1));
    const ScalingPoint& most = result.points.back();
    CHECK(most.speedup(kind) == Approx(kind == ScalingKind::kStrong ? 1 / (0.1 + 0.9 / 16) : 16 - 0.1 * 15));
    CHECK(most.efficiency(kind) == Approx(most.speedup(kind) / 16));
  }
  // Ranks that are faster than ideally, and ranks of no use, stay within the law's range.
  for (const double factor : {2.5, 1.0, 0.5}) {
    const ScalingStudy study = study_of(
        ScalingKind::kStrong, {run_of(1, 100), run_of(2, 100 / factor), run_of(4, 100 / factor / factor)});
    const double share = result_of(study).fit->serial_share;
    CHECK((share >= 0 && share <= 1));
  }
  const ScalingStudy two = study_of(ScalingKind::kStrong, {run_of(1, 100), run_of(2, 60)});
  CHECK_FALSE(result_of(two).fit);
}

TEST_CASE("steps are compared if all ranks of all runs have counted them") {
  ScalingStudy study = study_of(ScalingKind::kWeak, {run_of(1, 10, 0.5), run_of(2, 12, 0.625)});
  study.runs[1].report.ranks[1].calls.step_seconds = 0.75;
  ScalingResult result = result_of(study);
  CHECK(result.by_steps);
  CHECK(result.points[1].scaling.seconds == 0.75);
  CHECK(result.points[1].efficiency(ScalingKind::kWeak) == Approx(0.5 / 0.75));
  CHECK_THAT(ddl::report::verdict(result).front().what, Contains("2 ranks do 1.33 times the work of 1"));

  study.runs[1].report.ranks[0].calls.step_seconds = 0;
  result = result_of(study);
  CHECK_FALSE(result.by_steps);
  CHECK(result.points[1].scaling.seconds == 12);
}

TEST_CASE("a run that failed is said, and not compared") {
  JobRecord failed = run_of(4, 3);
  failed.report.reason = EndReason::kRankFailed;
  failed.report.exit_code = 7;
  failed.said = {"ddlrun: rank 1 exited with 7"};
  const ScalingStudy study = study_of(ScalingKind::kStrong, {run_of(1, 100), failed, run_of(2, 50)});
  const ScalingResult result = result_of(study);
  CHECK(result.points.size() == 2);
  CHECK(ddl::report::verdict(result).front().what ==
        "1 of 3 runs failed; the first, with 4 ranks, with exit code 7.");
  CHECK_THAT(ddl::report::page(study), Contains("rank 1 exited with 7"));

  const ScalingStudy nothing = study_of(ScalingKind::kStrong, {failed});
  CHECK(result_of(nothing).points.empty());
  CHECK_THAT(ddl::report::page(nothing), Contains("no run has succeeded"));
}

TEST_CASE("a study that is written and read says the same, and so does its page") {
  const ScalingStudy study =
      study_of(ScalingKind::kWeak, {run_of(1, 10, 0.5), run_of(2, 12, 0.75), run_of(4, 14, 0.8)});
  const std::string text = ddl::report::to_json(study);
  const auto read = ddl::report::parse_record(text);
  REQUIRE(read);
  const auto* const again = std::get_if<ScalingStudy>(&*read);
  REQUIRE(again != nullptr);
  CHECK(again->kind == ScalingKind::kWeak);
  CHECK(ddl::report::to_json(*again) == text);
  const std::string page = ddl::report::page(study);
  CHECK(ddl::report::page(*again) == page);
  CHECK_THAT(page, Contains("<h1>train</h1>") && Contains("weak scaling") && Contains("3 runs") &&
                       Contains("Gustafson&apos;s law"));
  CHECK_THAT(page, Contains("Speed-up over the number of ranks") && Contains("by the number of ranks"));

  CHECK(std::holds_alternative<JobRecord>(*ddl::report::parse_record(ddl::report::to_json(study.runs[0]))));
  for (const char* const wrong :
       {R"({"schema": "ddl.scaling/1"})", R"({"schema": "ddl.scaling/1", "runs": []})",
        R"({"schema": "ddl.scaling/1", "runs": [1]})", R"({"schema": "ddl.other/1"})",
        R"({"schema": "ddl.scaling/1", "kind": "odd", "runs": []})", "[]", "1", ""})
    CHECK_FALSE(ddl::report::parse_record(wrong));
}
