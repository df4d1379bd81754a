// --launcher mpirun: the site's mpirun starts the ranks.
#include "launcher/mpi/mpirun.h"
#include <fmt/format.h>

#include "base/cpu_set.h"
#include "base/files.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "cli/reports/job_report.h"
#include "contract/ddlrun.h"
#include "contract/environment.h"
#include "launcher/head/run_job.h"
#include "launcher/mpi/mpi_query.h"
#include "launcher/mpi/mpi_rank.h"
#include "launcher/node/node_probe.h"
#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

namespace {

using Words = std::vector<std::string>;
namespace env = contract::env;

/// What ranks are to have: this process's own, and what -x says.
Environment exported(const Request& request, const Environment& environment) {
  Environment variables;
  for (const auto& [name, value] : environment) {
    if (!launcher::is_denied(name) && !launcher::is_of_slurm_task(name)) variables[name] = value;
  }
  for (const launcher::EnvironmentExport& one : request.job.exports) {
    if (one.value) variables[one.name] = *one.value;
  }
  // What describes the login is each host's own.
  for (const std::string& name : launcher::login_variables(request.job.exports)) variables.erase(name);
  // Ranks learn them of the first host's name.
  if (request.allocation.nodes.size() > 1)
    variables[env::kMasterAddr] = request.allocation.nodes.front().name;
  variables[env::kMasterPort];
  variables[env::kMpiTmpdir];
  return variables;
}

/// The one rank of the job that the agent sees.
launcher::JobSpec engine_spec(const Request& request, Words command, const Environment& environment,
                              const Environment& more) {
  launcher::JobSpec spec = request.job;
  spec.command = std::move(command);
  spec.num_proc = 1;
  spec.ranks_per_node = 0;
  spec.hosts = spec.hostfile = spec.hosts_exclude = "";
  spec.launcher = launcher::LauncherChoice::kLocal;
  spec.binding = {};
  spec.binding.bind_to = affinity::BindTo::kNone;
  spec.tag_output = spec.timestamp_output = false;  // mpirun has done that
  spec.network_interfaces.clear();
  if (spec.stdin_target == launcher::StdinTarget::kAll) spec.stdin_target = launcher::StdinTarget::kRank0;
  // From these mpirun learns its nodes, and how many ranks each takes; its ranks' own ddlruns keep them from the ranks.
  for (const auto& [name, value] : environment) {
    if (launcher::is_of_slurm_task(name)) spec.exports.push_back({name, value});
  }
  for (const auto& [name, value] : more) spec.exports.push_back({name, value});
  const auto tmpdir = environment.find("TMPDIR");
  spec.exports.push_back({env::kMpiTmpdir, tmpdir != environment.end() ? tmpdir->second : ""});
  return spec;
}

/// Variables that the agent sets for its one rank, and that are no rank's of mpirun's unless the user has set them.
std::string to_forget(const Environment& environment) {
  Words names;
  for (const char* name : {env::kOmpNumThreads, env::kOmpPlaces, env::kOmpProcBind}) {
    if (!environment.contains(name)) names.emplace_back(name);
  }
  return join(names, ",");
}

}  // namespace

int run_by_mpirun(const Request& request, const Environment& environment, const Console& console) {
  const auto site = launcher::find_mpirun(request.mpi.mpirun, environment);
  if (!site) {
    const bool is_missing = site.error().code() == ErrorCode::kNotFound;
    return console.refuse({site.error().message(),
                           is_missing ? "load the MPI's module, or name its mpirun with --mpirun"
                                      : "name another with --mpirun, or omit " + request.mpi.choice,
                           is_missing ? contract::kNotFound : contract::kStartFailure});
  }
  Words rank_words = {request.job.remote_path.empty() ? own_path() : request.job.remote_path,
                      contract::kMpiRankOption};
  rank_words.insert(rank_words.end(), request.mpi.rank_options.begin(), request.mpi.rank_options.end());
  rank_words.emplace_back("--");
  rank_words.insert(rank_words.end(), request.job.command.begin(), request.job.command.end());
  const auto words = launcher::mpirun_words(request.job, request.allocation, request.mpi.wishes, *site,
                                            exported(request, environment), rank_words);
  if (!words)
    return console.refuse(
        {words.error().message(), "without " + request.mpi.choice + " ddlrun starts the ranks itself"});
  if (request.action == Action::kDryRun) return console.print(shell_line(*words) + "\n");

  const std::string master =
      request.allocation.nodes.size() > 1 ? request.allocation.nodes.front().name : std::string();
  Words command = {own_path(), contract::kMpiEngineOption, master, to_forget(environment)};
  command.insert(command.end(), words->begin(), words->end());
  const auto spec =
      engine_spec(request, std::move(command), environment,
                  launcher::mpirun_environment(request.job, site->flavor, request.allocation, environment));
  launcher::Notices notices;
  notices.note = [&](const std::string& sentence) {
    if (!request.job.quiet) console.note(sentence);
  };
  notices.detail = [&](const std::string& sentence) {
    if (request.job.verbose) console.note(sentence);
  };
  notices.detail(shell_line(*words));
  const auto ran =
      launcher::run_job(spec, launcher::local_allocation(launcher::hostname()), environment, notices);
  launcher::JobReport report = ran ? *ran : error_report(ran.error());
  if (ran) {
    // Its rank is mpirun, of which a person need not hear.
    report.ranks.clear();
    report.first_failure.reset();
  }
  if (report.reason == launcher::EndReason::kRankFailed && report.exit_code != contract::kSuccess) {
    // What failed has been said where it did.
    console.report(fmt::format("ddlrun: mpirun ended with {} after {}\n", report.exit_code,
                               duration_text(report.run_seconds)));
  } else {
    console.report(failure_report(report, spec, console.error_style()));
  }
  return report.exit_code;
}

int be_mpi_rank(const std::vector<std::string>& words, const Environment& environment,
                const Console& console) {
  Words local = {"-np", "1", "--launcher", "local", "--oversubscribe"};
  local.insert(local.end(), words.begin(), words.end());
  const auto directory = current_directory();
  const auto request = parse_command_line(local, {directory.value_or("/"), CpuSet::allowed().count(),
                                                  launcher::hostname(), read_user_file, environment});
  if (!request) return console.refuse(request.error());
  return launcher::run_mpi_rank(request->job, environment, [&](const launcher::JobReport& report) {
    console.report(failure_report(report, request->job, console.error_style()));
  });
}

}  // namespace ddl::cli
