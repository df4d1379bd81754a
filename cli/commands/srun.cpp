// --launcher srun: ddlrun asks the nodes, plans, and becomes the srun that starts the ranks.
#include "base/command.h"
#include "base/shell_words.h"
#include "cli/commands/commands.h"
#include "launcher/head/check_hosts.h"
#include "launcher/mpi/mpi_query.h"
#include "launcher/mpi/srun_line.h"

namespace ddl::cli {

namespace {

using launcher::SrunLine;

[[nodiscard]] int become_srun(const SrunLine& line, const Environment& environment, const Console& console) {
  // In ddlrun's own PATH: the one in line.environment is for the ranks.
  std::vector<std::string> words = line.words;
  if (const auto srun = find_in_path(words.front(), search_path(environment_entries(environment))))
    words.front() = *srun;
  const Error error = become(words, environment_entries(line.environment));
  return console.refuse(error.with_hint("Slurm's own commands must be in PATH"), contract::kStartFailure);
}

}  // namespace

int run_by_srun(const Request& request, const Environment& environment, const Console& console) {
  const bool is_dry = request.action == Action::kDryRun;
  const std::string& asked = request.script.request.mpi_type;
  const auto type = asked.empty() ? launcher::ask_mpi_types(environment).and_then(launcher::pmix_type_of)
                                  : Result<std::string>(asked);
  if (!type)
    return console.refuse(
        type.error().with_hint(
            "omit --launcher srun, as ddlrun has a PMIx server of its own; or name the type of "
            "your program's MPI with --mpi-type"),
        contract::kStartFailure);
  const auto plan =
      launcher::dry_run(request.job, request.allocation, environment, !is_dry || request.probes_hosts,
                        request.job.quiet ? nullptr : console.progress());
  if (!plan)
    return console.refuse(plan.error().with_hint("ddlrun --dry-run shows the plan"), contract::kStartFailure);
  const auto line = launcher::make_srun_line(request.job, *request.allocation.job, *plan, environment, *type,
                                             request.script.request.srun_options);
  if (!line)
    return console.refuse(
        line.error().with_hint("omit --launcher srun: ddlrun then plans each node separately"));
  if (!line->note.empty() && !request.job.quiet) console.note(line->note);
  if (is_dry) {
    if (!plan->asked_all && !request.job.quiet)
      console.note(
          "this srun line binds no rank, because the hosts were not asked for their CPUs; --probe asks them");
    return console.print(shell_line(line->words) + "\n");
  }
  if (request.job.verbose) console.note(shell_line(line->words));
  return become_srun(*line, environment, console);
}

}  // namespace ddl::cli
