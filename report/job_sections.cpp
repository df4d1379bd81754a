// How the job began and ended, how it compares with another run, and what to ask for next.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/section.h"
#include "report/verdict.h"

namespace ddl::report {
namespace {

using launcher::duration_text;
using launcher::RankOutcome;

Section end_of(const JobRecord& record) {
  Section section("How it ended");
  if (record.said.empty()) {
    section.sentence("Every rank exited with 0.");
  } else {
    section.quote("What ddlrun said:", record.said);
  }
  std::size_t quoted = 0;
  for (const RankOutcome& rank : record.report.ranks) {
    const bool is_first = record.report.first_failure == rank.rank;
    if (rank.stderr_tail.empty() || is_first || quoted == kMostRows) continue;
    section.quote(
        fmt::format("{} {}; its last lines on standard error:", rank_label(rank), rank_ending(rank)),
        rank.stderr_tail);
    ++quoted;
  }
  if (!record.report.stalls.empty()) {
    const auto shown = static_cast<std::ptrdiff_t>(std::min(record.report.stalls.size(), kMostRows));
    section.quote(fmt::format("Ranks waited long for others, {}:",
                              counted(static_cast<std::int64_t>(record.report.stalls.size()), "time")),
                  {record.report.stalls.begin(), record.report.stalls.begin() + shown});
  }
  if (!record.report.timeline.empty())
    section.sentence("What every rank did, and when, is in " + record.report.timeline + ".");
  return section;
}

Section start(const JobRecord& record) {
  Section section("Start");
  if (record.report.start.empty()) return section.not_measured("the job did not begin");
  std::vector<Section::Row> rows;
  for (const launcher::StartPhase& phase : record.report.start)
    rows.push_back({phase.name, duration_text(phase.seconds)});
  section.table({"Step", "after"}, rows);
  return section;
}

Section generations(const JobRecord& record) {
  Section section("Generations of the elastic job");
  std::vector<Section::Row> rows;
  for (const launcher::GenerationReport& one : record.report.generations) {
    rows.push_back({fmt::format("{}", one.number.generation), one.end.message,
                    fmt::format("{}", one.num_ranks), fmt::format("{}", one.hosts.size()),
                    duration_text(one.begin_seconds), duration_text(one.run_seconds)});
  }
  section.table({"Generation", "why it ended", "ranks", "hosts", "began after", "ran for"}, rows, 2);
  section.note("All other sections are of the last one.");
  return section;
}

Section scaling(const JobRecord& record, const JobRecord* baseline) {
  Section section("Scaling");
  if (baseline == nullptr)
    return section.not_measured("there is no run to compare with; --baseline FILE.json names one");
  const Scaling scaling{static_cast<int>(record.report.ranks.size()),
                        static_cast<int>(baseline->report.ranks.size()), record.report.run_seconds,
                        baseline->report.run_seconds};
  if (scaling.ranks == 0 || scaling.base_ranks == 0 || scaling.seconds <= 0)
    return section.not_measured("one of the two runs has no ranks that ran");
  section.table({"Run", "ranks", "time"},
                {{"Baseline: " + baseline->name, fmt::format("{}", scaling.base_ranks),
                  duration_text(scaling.base_seconds)},
                 {"This run", fmt::format("{}", scaling.ranks), duration_text(scaling.seconds)}});
  section.table({"Compared with the baseline", "value"},
                {{"Speed-up", fmt::format("{:.2f}", scaling.speedup())},
                 {"Efficiency, if the work is the same (strong scaling)", percent_text(scaling.efficiency())},
                 {"Efficiency, if the work grows with the ranks (weak scaling)",
                  percent_text(scaling.weak_efficiency())}});
  const JobTimes times = times_of(record.report), base = times_of(baseline->report);
  if (!times.has_calls || !base.has_calls || times.mean.compute <= 0) return section;
  // More ranks with the same work compute as long as fewer do, all of them together, if each does it as fast.
  const double computation = base.mean.compute * scaling.base_ranks / (times.mean.compute * scaling.ranks);
  section.table(
      {"Efficiency of the POP project, if the work is the same", "value"},
      {{"Computation: compute time of all ranks, the baseline's over this run's", percent_text(computation)},
       {"Parallel: of this run", percent_text(times.efficiency.parallel())},
       {"Global: their product", percent_text(computation * times.efficiency.parallel())}});
  return section;
}

}  // namespace

Section software_of(const JobRecord& record) {
  Section section("Software and environment");
  std::vector<Section::Row> rows{{"ddlrun", record.version}};
  for (const auto& [name, value] : record.environment) rows.push_back({name, value});
  section.table({"Name", "value"}, rows, 2);
  section.note(
      "Of the environment, only DDL_*, OMP_*, NCCL_*, UCX_* and FI_* are shown, and no name that may be of a "
      "secret.");
  return section;
}

namespace {

Section next(const JobRecord& record) {
  Section section("The next request");
  const std::vector<std::string> directives = next_request(record);
  if (directives.empty())
    return section.not_measured(record.scheduler_job.empty()
                                    ? "the job ran without a scheduler"
                                    : "the job has failed, so its needs are unknown");
  section.quote("With a margin of 20 % for memory and 50 % for time, this job needs:", directives);
  return section;
}

}  // namespace

std::vector<Section> sections_of_job(const JobRecord& record, const JobRecord* baseline) {
  std::vector<Section> sections{end_of(record)};
  if (!record.report.generations.empty()) sections.push_back(generations(record));
  sections.push_back(scaling(record, baseline));
  for (Section (*const make)(const JobRecord&) : {start, software_of, next}) sections.push_back(make(record));
  return sections;
}

}  // namespace ddl::report
