// The commands of ddlrun: each takes the request, does what it asks for, prints, and returns ddlrun's exit code.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "base/environment.h"
#include "base/error.h"
#include "cli/options/request.h"
#include "cli/reports/console.h"
#include "launcher/head/run_job.h"
#include "templates/lint/lint.h"
#include "templates/profile/site_profile.h"

namespace ddl::cli {

// A job (run.cpp, srun.cpp, mpirun.cpp).

/// Starts the job, or prints its plan for kDryRun.
int run(const Request& request, const Environment& environment, const Console& console);

/// --launcher srun. Asks the nodes what they have, plans, and becomes srun, whose exit code and messages are then the
/// job's. Returns only if that fails. For kDryRun srun's command line is printed, and the nodes are asked only with --probe.
int run_by_srun(const Request& request, const Environment& environment, const Console& console);

/// --launcher mpirun. Starts mpirun, or prints its command line for kDryRun, and ends what it leaves behind. Returns
/// mpirun's exit code.
int run_by_mpirun(const Request& request, const Environment& environment, const Console& console);

/// The part of a rank: what mpirun starts, "ddlrun --mpi-rank [options] -- command".
int be_mpi_rank(const std::vector<std::string>& words, const Environment& environment,
                const Console& console);

/// What the launcher reports while the job runs, as --quiet and --verbose want it; without progress. Both arguments must
/// outlive it.
launcher::Notices notices_of(const Request& request, const Console& console);

/// --check-hosts.
int check_hosts(const Request& request, const Environment& environment, const Console& console);

// What a job needs on this machine; checked before anything is started.

/// The working directory must exist and be one that can be entered: 127 or 126 otherwise, as a shell has it for a
/// command. Not checked if no node of the allocation is this machine, hostname: the agents of the others will report it.
std::optional<CommandLineError> check_workdir(const launcher::JobSpec& job,
                                              const launcher::Allocation& allocation,
                                              const std::string& hostname);

/// The key for ssh, if the job names one, must be readable: ssh would only mention that, and then fail to log in.
std::optional<CommandLineError> check_identity_file(const launcher::JobSpec& job);

/// Creates the output directory with its parents, if the job has one, and refuses one that cannot be written to.
std::optional<CommandLineError> create_output_directory(const launcher::JobSpec& job);

/// One sentence for each part of the command line that has no effect. Pure.
std::vector<std::string> start_notes(const launcher::JobSpec& job, const Environment& environment);

// --check-build (check_build.cpp).

/// Probes every capability, or one, on this machine or, where the request has hosts, on each of them. With one capability,
/// returns 0 where it is available and 1 where it is not. For a process with one thread.
int check_build(const Request& request, const Environment& environment, const Console& console);

// --show-bind, --explain-bind and --show-topology (show_bind.cpp).

int show_bind(const Request& request, const Environment& environment, const Console& console);

using ReadFile = std::function<Result<std::string>(const std::string& path)>;

/// What show_bind() prints. read_file: as CommandLineContext::read_file; sites_folders: as config_folders() finds them.
/// Errors name the file, or say what the node has too little of for the policy.
Result<std::string> binding_report(const BindingView& view, affinity::BindingPolicy policy,
                                   const ReadFile& read_file, const std::vector<std::string>& sites_folders);

// --slurm (script.cpp) and --lint (lint.cpp).

/// Writes the job script of a request for kScript where it is to go, or hands it to sbatch.
int write_script(const Request& request, const Environment& environment, const Console& console);

/// Checks a script that a person wrote. Returns 1 if it has an error.
int lint_script_file(const Request& request, const Environment& environment, const Console& console);

bool has_error(const std::vector<templates::LintFinding>& findings);

// The sites that ddlrun knows here: its own, the host's and the user's (sites.cpp).

/// The profile of a site by name or file; nullopt for "". Error: it is unknown or invalid, and where.
Result<std::optional<templates::SiteProfile>> known_site(const std::string& name,
                                                         const Environment& environment);

/// --list-sites: names and titles.
int list_sites(const Request& request, const Environment& environment, const Console& console);
/// --show-site: a profile, as its file has it.
int show_site(const Request& request, const Environment& environment, const Console& console);

/// What to do about an unknown site.
inline constexpr char kSitesHint[] = "ddlrun --list-sites lists them";

}  // namespace ddl::cli
