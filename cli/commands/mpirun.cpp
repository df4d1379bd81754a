// --launcher mpirun: the site's mpirun starts the ranks.
#include "launcher/mpi/mpirun.h"

#include <unistd.h>

#include <csignal>

#include <fmt/format.h>

#include "base/cpu_set.h"
#include "base/files.h"
#include "base/shell_words.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "cli/reports/job_report.h"
#include "contract/ddlrun.h"
#include "launcher/head/run_job.h"
#include "launcher/mpi/mpi_query.h"
#include "launcher/mpi/mpi_rank.h"
#include "launcher/node/node_probe.h"
#include "launcher/process/child.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::cli {

int run_by_mpirun(const Request& request, const Environment& own, const Console& console) {
  // In a scheduler's job mpirun starts its daemons by the scheduler.
  const Environment environment = launcher::scheduler_of(request.allocation).mpirun_environment(own);
  // Otherwise it would fail here as if the command were the reason.
  if (const Status enough = launcher::check_open_files_limit(); !enough) {
    console.report(failure_report(error_report(enough.error()), request.job, console.error_style()));
    return contract::kStartFailure;
  }
  const auto site = launcher::find_mpirun(request.mpi.mpirun, environment);
  if (!site) {
    const bool is_missing = site.error().code() == ErrorCode::kNotFound;
    return console.refuse(
        site.error().with_hint(is_missing ? "load the MPI's module, or name its mpirun with --mpirun"
                                          : "name another with --mpirun, or omit " + request.mpi.choice),
        is_missing ? contract::kNotFound : contract::kStartFailure);
  }
  std::vector<std::string> rank_words = {
      request.job.ssh.remote_path.empty() ? own_path() : request.job.ssh.remote_path,
      contract::kMpiRankOption};
  rank_words.insert(rank_words.end(), request.mpi.rank_options.begin(), request.mpi.rank_options.end());
  rank_words.emplace_back("--");
  rank_words.insert(rank_words.end(), request.job.command.begin(), request.job.command.end());
  const auto words = launcher::mpirun_words(
      request.job, request.allocation, request.mpi.options, *site,
      launcher::mpi_rank_variables(request.job, request.allocation, environment), rank_words);
  if (!words)
    return console.refuse(
        words.error().with_hint("omit " + request.mpi.choice + ": ddlrun then starts the ranks itself"));
  const std::string mismatch = launcher::mismatch_with_environment(request.job.command.front(),
                                                                   request.job.workdir, *site, environment);
  if (!mismatch.empty() && !request.job.quiet) console.note("warning: " + mismatch);
  if (request.action == Action::kDryRun) return console.print(shell_line(*words) + "\n");

  const launcher::JobSpec spec =
      launcher::mpirun_job(request.job, request.allocation, site->flavor, own_path(), *words, environment,
                           {launcher::hostname(), ::getpid()});
  const launcher::Notices notices = notices_of(request, console);
  notices.detail(shell_line(*words));
  const auto ran =
      launcher::run_job(spec, launcher::local_allocation(launcher::hostname()), environment, notices);
  const launcher::JobReport report = ran ? *ran : error_report(ran.error());
  if (report.reason == launcher::EndReason::kRankFailed && report.exit_code != contract::kSuccess) {
    // The failed rank has been reported by its own ddlrun.
    console.report(fmt::format("ddlrun: mpirun ended with {} after {}\n", report.exit_code,
                               launcher::duration_text(report.run_seconds)));
  } else {
    console.report(failure_report(report, spec, console.error_style()));
  }
  return report.exit_code;
}

int run_as_mpi_rank(const std::vector<std::string>& words, const Environment& environment,
                    const Console& console) {
  std::vector<std::string> local = {"-np", "1", "--launcher", "local", "--oversubscribe"};
  local.insert(local.end(), words.begin(), words.end());
  const auto directory = current_directory();
  const auto request = parse_command_line(local, {directory.value_or("/"), CpuSet::allowed().count(),
                                                  launcher::hostname(), read_user_file, environment});
  if (!request) return console.refuse(request.error());
  const auto warn = [&](const std::string& sentence) {
    if (!request->job.quiet) console.note(sentence);
  };
  return launcher::run_mpi_rank(request->job, environment, warn, [&](const launcher::JobReport& report) {
    console.report(failure_report(report, request->job, console.error_style()));
  });
}

}  // namespace ddl::cli
