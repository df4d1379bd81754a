// The commands of ddlrun, and the table of actions by which a command line is read and run (actions.cpp).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "cli/options/request.h"
#include "cli/reports/console.h"
#include "launcher/head/run_job.h"
#include "templates/lint/lint.h"
#include "templates/profile/site_catalog.h"

namespace ddl::cli {

/// Reads the words after argv[0], then the configuration file, the hostfile and the rankfile that they name. Pure
/// except for context.read_file, which is called at most once for each of them.
Result<Request> parse_command_line(std::span<const std::string> words, const CommandLineContext& context);

/// Prints the notes of the request, finds its site, and returns the exit code of its command.
int run_action(Request request, const Environment& environment, const Console& console);

/// Runs the request, prints the result, and returns ddlrun's exit code.
using Command = int(const Request& request, const Environment& environment, const Console& console);

// A job (run.cpp, srun.cpp, mpirun.cpp).

/// Starts the job, or prints its plan for kDryRun.
Command run;

/// --launcher srun. Asks the nodes for their resources, plans, and becomes srun by exec; exit code and messages are
/// then those of srun. Returns only if that fails. For kDryRun srun's command line is printed, and the nodes are
/// asked only with --probe.
Command run_by_srun;

/// --launcher mpirun. Starts mpirun, or prints its command line for kDryRun, and ends the processes that it leaves
/// behind. Returns mpirun's exit code.
Command run_by_mpirun;

/// The command that mpirun starts for each rank: "ddlrun --mpi-rank [options] -- command".
int run_as_mpi_rank(const std::vector<std::string>& words, const Environment& environment,
                    const Console& console);

/// A job that has ended.
struct RecordedRun {
  report::JobRecord record;
  int exit_code = 0;  ///< of ddlrun
};
/// Runs the job by ddlrun's agents, says how it ended, and writes what was asked for about it: output, reports, metrics.
/// suffix: as that of ReportFiles::plan(). Error: something cannot be written, and nothing was started.
Result<RecordedRun> run_recorded(const Request& request, const Environment& environment,
                                 const Console& console, const std::string& suffix = "");

/// --scaling: runs the job with each number of ranks, one after the other, and compares (scaling.cpp). A number with which
/// it fails is not run again; a signal ends the study. Returns the exit code of the first run that failed.
Command run_scaling;

/// The callbacks by which the launcher reports while the job runs, according to --quiet and --verbose; progress is
/// not set. Both arguments must outlive them.
launcher::Notices notices_of(const Request& request, const Console& console);

/// --check-hosts.
Command check_hosts;

// Pages of what is over (pages.cpp). Both return kOutputLost if the page cannot be written.

Command draw_report;    ///< --report-from
Command view_timeline;  ///< --timeline-view

// Requirements of a job on this machine; checked before anything is started.

/// The working directory must exist and the user must be able to enter it: otherwise kNotFound or
/// kPermissionDenied, which become 127 and 126, as from a shell.
/// Not checked if no node of the allocation is this machine, which is hostname: the agents of other nodes report it.
Status check_workdir(const launcher::JobSpec& job, const launcher::Allocation& allocation,
                     const std::string& hostname);

/// The key for ssh, if the job names one, must be readable: ssh would only warn, and then fail to log in.
Status check_identity_file(const launcher::JobSpec& job);

/// Creates the output directory with its parents, if the job has one, and refuses one that cannot be written to.
Status create_output_directory(const launcher::JobSpec& job);

/// One sentence for each part of the command line that has no effect. Pure.
std::vector<std::string> start_notes(const launcher::JobSpec& job, const Environment& environment);

// --inspect (inspect.cpp).

/// Prints what the ranks of a running job of this host do, or which jobs there are to choose from. Returns 1 if there
/// is none, or none that this user may look at, and kLostHost if it does not answer.
Command inspect;

/// Prints what a site's monitoring reads of such a job. Returns as inspect().
Command print_metrics;

/// Makes a running job of this host record a timeline, or write it. Returns as inspect().
Command change_timeline;

// --check-build (check_build.cpp).

/// Probes every capability, or one, on this machine or, if the request has hosts, on each of them. With one
/// capability, returns 0 if it is available and 1 if it is not. For a process with one thread.
Command check_build;

// --show-bind, --explain-bind and --show-topology (show_bind.cpp).

Command show_bind;

/// What show_bind() prints. read_file: as CommandLineContext::read_file. Errors name the file, or the resource of which
/// the node has too little for the policy.
Result<std::string> binding_report(
    const Request& request, const std::function<Result<std::string>(const std::string& path)>& read_file);

// --slurm (script.cpp) and --lint (lint.cpp).

/// Writes the job script of a request for kScript to its file or to standard output, or passes it to sbatch.
Command write_script;

/// Checks a script that the user wrote. Returns 1 if it has an error.
Command lint_script_file;

bool has_error(const std::vector<templates::LintFinding>& findings);

// The sites that ddlrun knows on this host: those that are shipped, those in /etc and the user's (sites.cpp).

templates::SiteCatalog site_catalog(const Environment& environment);

/// The nodes that the job or its script requests: by options, or inside a Slurm job those that it has.
templates::NodeRequest requested_nodes(const Request& request);

/// Sets the profile and the text of the request's site, and the order of ranks that it advises, unless the user has
/// chosen one: for the job, and for the ddlrun of a script and of mpirun's ranks. Error: the site is unknown, or its
/// profile is invalid, with the line.
Status find_site(Request& request, const templates::SiteCatalog& catalog,
                 const templates::NodeRequest& nodes);

/// --list-sites: names and titles.
Command list_sites;

/// --explain: the facts of the request's site with their sources, of one variant if the user has named one.
Command explain_site;

/// What to do about an unknown site.
inline constexpr char kSitesHint[] = "ddlrun --list-sites lists them";

}  // namespace ddl::cli
