// The commands of ddlrun: each takes the request, does what it asks for, prints, and returns ddlrun's
// exit code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "cli/options/request.h"
#include "cli/reports/console.h"
#include "templates/lint/lint.h"
#include "templates/profile/site_profile.h"

namespace ddl::cli {

// ddlrun --launcher mpirun: the site's mpirun starts the ranks.

/// Starts mpirun, or prints its line for --dry-run, and watches over it: what it leaves behind is ended. Returns ddlrun's exit
/// code, which is mpirun's.
int run_by_mpirun(const Request& request, const Environment& environment, const Console& console);

/// The part of a rank: what mpirun starts, "ddlrun --mpi-rank [options] -- command".
int be_mpi_rank(const std::vector<std::string>& words, const Environment& environment,
                const Console& console);

// A job whose ranks srun starts, without agents.

/// Asks the nodes what they have, plans, and becomes srun: its exit code and its messages are the job's. Returns only if
/// that was not to be; for kDryRun the line is printed instead, and the nodes are asked only with --probe.
int run_by_srun(const Request& request, const Environment& environment, const Console& console);

// ddlrun --slurm and what goes with it.

/// Writes the job script of a request for kScript where it is to go, or hands it to sbatch. Returns ddlrun's exit code.
int write_script(const Request& request, const Environment& environment, const Console& console);

/// What the rules say of a script that a person wrote. Returns 1 if one of its errors was found.
int lint_script_file(const Request& request, const Environment& environment, const Console& console);

// What speaks against a job script, for a person or a script to read.

/// "job.sh:7: warning: [signal-usr1] ... (sbatch(1), --signal)"; without a line: "job.sh: warning: ...".
std::string finding_line(const templates::LintFinding& finding, const std::string& file);
/// One line of JSON: {"file", "findings": [{"rule", "severity", "line", "sentence", "reference"}]}.
std::string findings_json(const std::vector<templates::LintFinding>& findings, const std::string& file);

bool has_error(const std::vector<templates::LintFinding>& findings);

// The sites that ddlrun knows here: its own, the host's and the user's.

/// The profile of a site by name or file; nullopt for "". Error: it is not known or not right, and where.
Result<std::optional<templates::SiteProfile>> known_site(const std::string& name,
                                                         const Environment& environment);

/// --list-sites: names and titles. Returns ddlrun's exit code.
int list_sites(const Request& request, const Environment& environment, const Console& console);
/// --show-site: a profile, as its file has it. Returns ddlrun's exit code.
int show_site(const Request& request, const Environment& environment, const Console& console);

/// What to do about a site that is not known.
inline constexpr char kSitesHint[] = "ddlrun --list-sites lists them";

}  // namespace ddl::cli
