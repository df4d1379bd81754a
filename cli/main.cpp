// ddlrun: options in, objects wired, exit code out.
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/check_build/check_build.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_checks.h"
#include "cli/commands/show_bind.h"
#include "cli/options/option_table.h"
#include "cli/options/request.h"
#include "cli/options/this_process.h"
#include "cli/reports/check_hosts_report.h"
#include "cli/reports/console.h"
#include "cli/reports/job_report.h"
#include "cli/reports/plan_report.h"
#include "contract/ddlrun.h"
#include "launcher/head/check_hosts.h"
#include "launcher/head/host_comparison.h"
#include "launcher/head/run_job.h"
#include "launcher/mpi/mpirun.h"
#include "launcher/node/agent.h"
#include "launcher/node/node_probe.h"

namespace {

using namespace ddl;

/// Prints how the job went and returns ddlrun's exit code.
int finish(const launcher::JobReport& report, const cli::Request& request, const cli::Console& console) {
  if (request.json) {
    const bool written = console.report(cli::report_json(report));
    if (!written && report.exit_code == contract::kSuccess) return contract::kOutputLost;
  } else if (report.reason != launcher::EndReason::kSuccess) {
    console.report(cli::failure_report(report, request.job, console.error_style()));
  } else if (request.job.verbose) {
    console.note(cli::success_sentence(report));
  }
  return report.exit_code;
}

int dry_run(const cli::Request& request, const Environment& environment, const cli::Console& console) {
  const auto plan = launcher::dry_run(request.job, request.allocation, environment, request.probes_hosts,
                                      request.job.quiet ? nullptr : console.progress());
  if (!plan) return finish(cli::error_report(plan.error()), request, console);
  return console.print(request.json ? cli::plan_json(*plan, request.job, environment)
                                    : cli::plan_text(*plan, request.job, environment));
}

int show_bind(const cli::Request& request, const Environment& environment, const cli::Console& console) {
  const auto report = cli::binding_report(request.binding_view, request.job.binding, cli::read_user_file,
                                          cli::config_folders(environment, "sites"));
  if (!report)
    return console.refuse({report.error().message(), "ddlrun --help lists the options of binding"});
  return console.print(*report);
}

int check_hosts(const cli::Request& request, const cli::Console& console, const Environment& environment) {
  if (const auto error = cli::check_identity_file(request.job)) return console.refuse(*error);
  const auto hosts = launcher::check_hosts(request.job, request.allocation, environment,
                                           request.job.quiet ? nullptr : console.progress());
  if (!hosts) return finish(cli::error_report(hosts.error()), request, console);
  const launcher::HostComparison comparison = launcher::compare_hosts(*hosts);
  const auto style = cli::TerminalStyle::for_fd(STDOUT_FILENO, environment);
  const int printed = console.print(request.json ? cli::check_hosts_json(*hosts, comparison)
                                                 : cli::check_hosts_text(*hosts, comparison, style));
  return printed != contract::kSuccess ? printed : launcher::exit_code_of(comparison);
}

int run(const cli::Request& request, const Environment& environment, const cli::Console& console) {
  if (const auto error = cli::create_output_directory(request.job)) return console.refuse(*error);
  launcher::Notices notices;
  notices.note = [&](const std::string& sentence) {
    if (!request.job.quiet) console.note(sentence);
  };
  notices.detail = [&](const std::string& sentence) {
    if (request.job.verbose) console.note(sentence);
  };
  if (!request.job.quiet) notices.progress = console.progress();
  const auto report = launcher::run_job(request.job, request.allocation, environment, notices);
  return finish(report ? *report : cli::error_report(report.error()), request, console);
}

}  // namespace

int main(int argc, char** argv) {
  cli::open_closed_standard_fds();
  const Environment environment = process_environment();
  const cli::Console console(environment);

  const auto directory = cli::current_directory();
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  // Another host's ddlrun speaks: there is no user here.
  if (words.size() == 2 && words[0] == contract::kAgentOption) ::_exit(launcher::run_remote_agent(words[1]));
  if (words.size() == 2 && words[0] == contract::kJoiningAgentOption)
    ::_exit(launcher::run_joining_agent(words[1]));
  if (words.size() > 3 && words[0] == contract::kMpiEngineOption)
    return launcher::become_mpirun({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == contract::kMpiRankOption)
    return cli::be_mpi_rank({words.begin() + 1, words.end()}, environment, console);
  const auto request =
      cli::parse_command_line(words, {directory.value_or(""), CpuSet::allowed().count(), launcher::hostname(),
                                      cli::read_user_file, environment});
  if (!request) return console.refuse(request.error());

  if (!request->job.quiet) {
    for (const std::string& note : request->notes) console.note(note);
  }
  switch (request->action) {
    case cli::Action::kHelp: return console.print(cli::help_text());
    case cli::Action::kVersion: return console.print(cli::version_text());
    case cli::Action::kCheckBuild: return cli::check_build(*request, environment, console);
    case cli::Action::kShowBind: return show_bind(*request, environment, console);
    case cli::Action::kScript: return cli::write_script(*request, environment, console);
    case cli::Action::kLint: return cli::lint_script_file(*request, environment, console);
    case cli::Action::kListSites: return cli::list_sites(*request, environment, console);
    case cli::Action::kShowSite: return cli::show_site(*request, environment, console);
    case cli::Action::kCheckHosts: return check_hosts(*request, console, environment);
    case cli::Action::kDryRun:
    case cli::Action::kRun: break;
  }
  if (!directory)
    return console.refuse(
        {directory.error().message(), "cd to a directory that exists", contract::kNotFound});
  if (const auto error = cli::check_workdir(request->job, request->allocation, launcher::hostname()))
    return console.refuse(*error);
  if (const auto error = cli::check_identity_file(request->job)) return console.refuse(*error);
  if (!request->job.quiet) {
    for (const std::string& note : cli::start_notes(request->job, environment)) console.note(note);
  }
  if (request->job.launcher == launcher::LauncherChoice::kSrun)
    return cli::run_by_srun(*request, environment, console);
  if (request->job.launcher == launcher::LauncherChoice::kMpirun)
    return cli::run_by_mpirun(*request, environment, console);
  return request->action == cli::Action::kDryRun ? dry_run(*request, environment, console)
                                                 : run(*request, environment, console);
}
