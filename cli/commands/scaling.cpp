// Runs a job with several numbers of ranks, and compares.
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/reports/report_files.h"
#include "cli/reports/scaling_report.h"
#include "launcher/head/check_hosts.h"

namespace ddl::cli {

namespace {

/// One of the runs. round: from 1.
struct SizedRun {
  int ranks = 0;
  int round = 0;
  std::string suffix() const { return fmt::format("-{}-{}", ranks, round); }
};

/// All sizes once, then all again: what changes on the machine meanwhile touches all of them.
std::vector<SizedRun> runs_of(const ScalingTask& task) {
  std::vector<SizedRun> runs;
  for (int round = 1; round <= task.repeats; ++round)
    for (const int ranks : task.sizes) runs.push_back({ranks, round});
  return runs;
}

/// With its own files in the folders of the study.
Request request_of(const Request& study, const SizedRun& run) {
  Request request = study;
  request.job.num_ranks = run.ranks;
  if (!request.job.output_directory.empty())
    request.job.output_directory += fmt::format("/ranks.{}/run.{}", run.ranks, run.round);
  request.json = false;  // one report, of the study
  request.report.page.clear();
  request.report.json.clear();
  return request;
}

/// Refuses the largest number of ranks if it is known now that there are too few slots for it: before the first run, not
/// after hours.
Status check_slots(const Request& study, const Environment& environment) {
  for (const launcher::AllocatedNode& node : study.allocation.nodes)
    if (!node.slots) return {};
  const auto plan = launcher::dry_run(study.job, study.allocation, environment, false, nullptr);
  return plan ? Status() : fail(plan.error());
}

class Study {
 public:
  Study(const Request& request, const Environment& environment, const Console& console)
      : request_(request), environment_(environment), console_(console) {
    study_.kind = request.scaling.kind;
  }

  int run() {
    if (const Status enough = check_slots(request_, environment_); !enough)
      return console_.refuse(enough.error());
    auto files = ReportFiles::plan(request_);
    if (!files) return console_.refuse(files.error());
    const std::vector<SizedRun> runs = runs_of(request_.scaling);
    for (std::size_t i = 0; i < runs.size() && !is_ended_; ++i) {
      if (failed_sizes_.contains(runs[i].ranks)) continue;
      if (!request_.job.quiet)
        console_.note(
            fmt::format("scaling: run {} of {}: {}", i + 1, runs.size(), counted(runs[i].ranks, "rank")));
      if (const Status written = run_once(runs[i]); !written) return console_.refuse(written.error());
    }
    const bool is_printed = console_.report(request_.json ? scaling_json(study_, exit_code_)
                                                          : scaling_text(study_, console_.error_style()));
    if (!is_printed && request_.json) lose_output();
    if (!request_.report.is_wanted()) return exit_code_;
    if (const Status written = files->write(std::move(study_)); !written) {
      console_.note("the report was not written: " + written.error().message());
      lose_output();
    }
    return exit_code_;
  }

 private:
  /// Error: its files cannot be written, before it has begun.
  Status run_once(const SizedRun& run) {
    DDL_ASSIGN(ended, run_recorded(request_of(request_, run), environment_, console_, run.suffix()));
    if (exit_code_ == contract::kSuccess) exit_code_ = ended.exit_code;
    if (const launcher::EndReason reason = ended.record.report.reason;
        reason != launcher::EndReason::kSuccess) {
      failed_sizes_.insert(run.ranks);
      is_ended_ = reason == launcher::EndReason::kSignal;
    }
    study_.runs.push_back(std::move(ended.record));
    return {};
  }

  void lose_output() {
    if (exit_code_ == contract::kSuccess) exit_code_ = contract::kOutputLost;
  }

  const Request& request_;
  const Environment& environment_;
  const Console& console_;
  report::ScalingStudy study_;
  std::set<int> failed_sizes_;
  bool is_ended_ = false;
  int exit_code_ = contract::kSuccess;
};

}  // namespace

int run_scaling(const Request& request, const Environment& environment, const Console& console) {
  return Study(request, environment, console).run();
}

}  // namespace ddl::cli
