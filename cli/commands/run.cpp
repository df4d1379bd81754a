// Starts a job, or prints its plan; asks the hosts of a job for their resources.
// Before a job starts, checks its requirements on this machine.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "cli/reports/check_hosts_report.h"
#include "cli/reports/job_metrics.h"
#include "cli/reports/job_report.h"
#include "cli/reports/plan_report.h"
#include "cli/reports/report_files.h"
#include "contract/ddlrun.h"
#include "contract/environment.h"
#include "launcher/elastic/generation_planner.h"
#include "launcher/head/check_hosts.h"
#include "launcher/head/continued_job.h"
#include "launcher/head/elastic_job.h"
#include "launcher/head/host_comparison.h"
#include "launcher/head/run_job.h"
#include "launcher/node/node_probe.h"
#include "launcher/plan/framework_environment.h"
#include "launcher/plan/rank_environment.h"
#include "templates/profile/site_environment.h"

namespace ddl::cli {

namespace fs = std::filesystem;

Status check_workdir(const launcher::JobSpec& job, const launcher::Allocation& allocation,
                     const std::string& hostname) {
  if (job.workdir.empty()) {
    return fail(ErrorCode::kNotFound,
                "the current directory, in which the ranks would start, has been removed",
                "cd to one that exists (cd \"$PWD\" if it was made anew), or name one with --workdir");
  }
  const bool runs_here = std::any_of(
      allocation.nodes.begin(), allocation.nodes.end(),
      [&](const launcher::AllocatedNode& node) { return launcher::is_this_machine(node, hostname); });
  if (!runs_here) return {};
  const std::string name = shell_quote(job.workdir);
  std::error_code error;
  const fs::file_status status = fs::status(job.workdir, error);
  if (status.type() == fs::file_type::not_found) {
    return fail(ErrorCode::kNotFound, "the working directory " + name + " does not exist",
                "create it, or give another with --workdir");
  }
  if (status.type() == fs::file_type::none) {
    return fail(ErrorCode::kPermissionDenied,
                "the working directory " + name + " cannot be used: " + error.message(),
                "give another with --workdir");
  }
  if (status.type() != fs::file_type::directory) {
    return fail(ErrorCode::kPermissionDenied, "the working directory " + name + " is not a directory",
                "give a directory with --workdir");
  }
  if (::access(job.workdir.c_str(), X_OK) != 0) {
    return fail(ErrorCode::kPermissionDenied, "the working directory " + name + " may not be entered",
                "change its permissions, or give another with --workdir");
  }
  return {};
}

Status check_identity_file(const launcher::JobSpec& job) {
  if (job.ssh.identity_file.empty() || ::access(job.ssh.identity_file.c_str(), R_OK) == 0) return {};
  return refuse("the key " + shell_quote(job.ssh.identity_file) +
                    " cannot be read: " + std::generic_category().message(errno),
                "name your key with -i, or omit -i to use the keys of ssh's configuration");
}

Status create_output_directory(const launcher::JobSpec& job) {
  if (job.output_directory.empty()) return {};
  const std::string name = shell_quote(job.output_directory);
  const std::string hint = "give another directory with --output-filename";
  std::error_code error;
  fs::create_directories(job.output_directory, error);
  if (error) {
    return refuse("the output directory " + name + " cannot be created: " + error.message(), hint);
  }
  if (::access(job.output_directory.c_str(), W_OK | X_OK) != 0) {
    return refuse("the output directory " + name + " may not be written to", hint);
  }
  return {};
}

std::vector<std::string> start_notes(const launcher::JobSpec& job, const Environment& environment) {
  std::vector<std::string> notes;
  for (const launcher::EnvironmentExport& one : job.exports) {
    if (!one.value && !environment.contains(one.name)) {
      notes.push_back("-x " + one.name + ": " + one.name + " is not set here, so the ranks do not get it");
    }
  }
  if (job.launcher == launcher::LauncherChoice::kSrun) return notes;
  std::vector<std::string> replaced;
  for (const auto& [name, value] : environment) {
    const bool is_passed_on = std::any_of(job.exports.begin(), job.exports.end(),
                                          [&name = name](const auto& one) { return one.name == name; });
    if (launcher::is_of_another_job(name, job.framework) && !is_passed_on) replaced.push_back(name);
  }
  if (replaced.empty()) return notes;
  if (environment.contains(contract::env::kRankRecord)) {
    notes.push_back(
        "this is rank " + value_of(environment, contract::env::kRank) +
        " of another ddlrun; the ranks of this one are a job of their own, without the variables of that");
  } else {
    notes.push_back(
        "ranks do not inherit " + join(replaced, ", ") +
        " of this shell, which would tell a framework of another job; --framework none keeps them");
  }
  return notes;
}

namespace {

/// Prints the report of the job and returns ddlrun's exit code.
int finish(const launcher::JobReport& report, const Request& request, const Console& console) {
  if (request.json) {
    const bool written = console.report(report::report_json(report));
    if (!written && report.exit_code == contract::kSuccess) return contract::kOutputLost;
  } else if (report.reason != launcher::EndReason::kSuccess) {
    console.report(failure_report(report, request.job, console.error_style()));
  } else if (request.job.verbose) {
    console.note(success_sentence(report));
  }
  return report.exit_code;
}

/// The variables that the ranks of the job need at its site.
std::vector<launcher::DefaultVariable> variables_at(const templates::SiteProfile& site,
                                                    const Request& request, const Environment& own) {
  templates::SiteJob job;
  job.nodes = request.allocation.nodes.size();
  job.user = value_of(own, "USER");
  if (job.user.empty()) job.user = std::to_string(::getuid());
  if (request.allocation.job) job.slurm_job = request.allocation.job->id;
  job.loaded_modules = value_of(own, "LOADEDMODULES");
  std::vector<launcher::DefaultVariable> variables;
  for (const auto& [name, value] : templates::site_environment(site.setup, job))
    variables.push_back({name, value, "site " + site.name});
  return variables;
}

/// main() has set it, after own was read.
std::vector<launcher::DefaultVariable> home_of(const Environment& own) {
  if (!lacks_home(own)) return {};
  return {{"HOME", kHomeOfUnknownUser, "user " + std::to_string(::geteuid()) + " has no entry in passwd"}};
}

/// own: ddlrun's environment, of which the plan shows the differences.
int print_plan(const Request& request, const Environment& own, const Environment& environment,
               const std::vector<launcher::DefaultVariable>& defaults, const Console& console) {
  launcher::JobSpec job = request.job;
  launcher::Allocation allocation = request.allocation;
  launcher::limit_to_first_generation(job, allocation.nodes);
  const auto plan = launcher::dry_run(job, allocation, environment, request.probes_hosts,
                                      job.quiet ? nullptr : console.progress());
  if (!plan) return finish(error_report(plan.error()), request, console);
  return console.print(request.json ? plan_json(*plan, job, own, defaults)
                                    : plan_text(*plan, job, own, defaults));
}

Result<launcher::JobReport> run_in_mode(const Request& request, const Environment& environment,
                                        const Console& console, const launcher::Notices& notices) {
  switch (request.job.elastic.mode) {
    case launcher::ElasticMode::kOff:
      return launcher::run_job(request.job, request.allocation, environment, notices);
    case launcher::ElasticMode::kContinue:
      return launcher::run_continued_job(request.job, request.allocation, environment, notices);
    case launcher::ElasticMode::kRestart: break;
  }
  return launcher::run_elastic_job(
      request.job, request.allocation, environment, notices, [&](const launcher::JobReport& generation) {
        if (!request.json) console.report(failure_report(generation, request.job, console.error_style()));
      });
}

/// SIGUSR1 and SIGUSR2 are for the ranks. One that comes when these have just ended must not take ddlrun's exit code.
void keep_user_signals_from_this_process() {
  sigset_t for_ranks;
  ::sigemptyset(&for_ranks);
  ::sigaddset(&for_ranks, SIGUSR1);
  ::sigaddset(&for_ranks, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &for_ranks, nullptr);
}

int run_by_agents(const Request& request, const Environment& environment, const Console& console) {
  const auto run = run_recorded(request, environment, console);
  return run ? run->exit_code : console.refuse(run.error());
}

}  // namespace

Result<RecordedRun> run_recorded(const Request& request, const Environment& environment,
                                 const Console& console, const std::string& suffix) {
  DDL_TRY(create_output_directory(request.job));
  DDL_ASSIGN(files, ReportFiles::plan(request, suffix));
  DDL_ASSIGN(metrics, JobMetrics::plan(request.metrics, launcher::hostname()));
  launcher::Notices notices = notices_of(request, console);
  metrics.measure(notices);
  if (!request.job.quiet) notices.progress = console.progress();
  const auto began = static_cast<double>(std::time(nullptr));
  const auto run = run_in_mode(request, environment, console, notices);
  const launcher::JobReport report = run ? *run : error_report(run.error());
  RecordedRun recorded{record_of(request, environment, began, report), finish(report, request, console)};
  if (const Status ended = metrics.end(); !ended && recorded.exit_code == contract::kSuccess)
    recorded.exit_code = contract::kOutputLost;
  if (!request.report.is_wanted()) return recorded;
  if (const Status written = files.write(recorded.record); !written) {
    console.note("the report was not written: " + written.error().message());
    if (recorded.exit_code == contract::kSuccess) recorded.exit_code = contract::kOutputLost;
  }
  return recorded;
}

launcher::Notices notices_of(const Request& request, const Console& console) {
  return {[&](const std::string& sentence) {
            if (!request.job.quiet) console.note(sentence);
          },
          [&](const std::string& sentence) {
            if (request.job.verbose) console.note(sentence);
          },
          nullptr};
}

int run(const Request& given, const Environment& own, const Console& console) {
  Request request = given;
  request.job.shell = launcher::own_shell_attributes();
  std::vector<launcher::DefaultVariable> others = home_of(own);
  if (request.profile) {
    for (launcher::DefaultVariable& one : variables_at(*request.profile, request, own))
      others.push_back(std::move(one));
  }
  const auto defaults = launcher::default_variables(request.job, own, others);
  Environment environment = own;
  for (const launcher::DefaultVariable& one : defaults) environment.emplace(one.name, one.value);
  if (const Status usable = check_workdir(request.job, request.allocation, launcher::hostname()); !usable)
    return console.refuse(usable.error(), usable.error().code() == ErrorCode::kNotFound
                                              ? contract::kNotFound
                                              : contract::kNotExecutable);
  if (const Status readable = check_identity_file(request.job); !readable)
    return console.refuse(readable.error());
  if (!request.job.quiet) {
    for (const std::string& note : start_notes(request.job, environment)) console.note(note);
    if (request.profile && !(request.profile->setup.modules.empty() && request.profile->setup.lines.empty()))
      console.note("the modules and lines of shell in the profile of " + request.profile->name +
                   " are for job scripts (--slurm), and are not used here");
    // The plan shows them, too, but not the command lines of srun and mpirun.
    const bool is_dry = request.action == Action::kDryRun;
    if (!defaults.empty() && (is_dry ? !has_agents(request.job) : request.job.verbose))
      console.note(defaults_sentence(defaults));
  }
  if (request.job.launcher == launcher::LauncherChoice::kSrun)
    return run_by_srun(request, environment, console);
  if (request.job.launcher == launcher::LauncherChoice::kMpirun)
    return run_by_mpirun(request, environment, console);
  if (request.action == Action::kDryRun) return print_plan(request, own, environment, defaults, console);
  keep_user_signals_from_this_process();
  return request.scaling.sizes.empty() ? run_by_agents(request, environment, console)
                                       : run_scaling(request, environment, console);
}

int check_hosts(const Request& request, const Environment& environment, const Console& console) {
  if (const Status readable = check_identity_file(request.job); !readable)
    return console.refuse(readable.error());
  const auto hosts = launcher::check_hosts(request.job, request.allocation, environment,
                                           request.job.quiet ? nullptr : console.progress());
  if (!hosts) return finish(error_report(hosts.error()), request, console);
  const launcher::HostComparison comparison = launcher::compare_hosts(*hosts);
  const auto style = TerminalStyle::for_fd(STDOUT_FILENO, environment);
  const int printed = console.print(request.json ? check_hosts_json(*hosts, comparison)
                                                 : check_hosts_text(*hosts, comparison, style));
  return printed != contract::kSuccess ? printed : launcher::exit_code_of(comparison);
}

}  // namespace ddl::cli
