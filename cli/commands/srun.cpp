// --launcher srun: ddlrun asks the nodes, plans, and becomes the srun that starts the ranks.
#include <algorithm>

#include "base/command.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "launcher/head/run_job.h"
#include "launcher/mpi/mpi_query.h"
#include "launcher/plan/srun_command.h"

namespace ddl::cli {

namespace {

using launcher::SrunLine;

/// The one that was asked for, or PMIx.
Result<std::string> mpi_type(const std::string& asked) {
  if (!asked.empty()) return asked;
  const auto types = launcher::ask_mpi_types();
  if (!types) return fail(types.error());
  if (std::find(types->begin(), types->end(), "pmix") != types->end()) return std::string("pmix");
  return fail(ErrorCode::kUnavailable,
              "the srun here has no PMIx, with which ranks find each other; it has " + join(*types, ", "));
}

[[nodiscard]] int become_srun(const SrunLine& line, const Console& console) {
  const Error error = become(line.words, environment_entries(line.environment));
  return console.refuse({error.message(), "Slurm's own commands must be in PATH", contract::kStartFailure});
}

}  // namespace

int run_by_srun(const Request& request, const Environment& environment, const Console& console) {
  const bool is_dry = request.action == Action::kDryRun;
  const auto type = mpi_type(request.script.request.mpi_type);
  if (!type)
    return console.refuse({type.error().message(),
                           "omit --launcher srun, for ddlrun brings its own PMIx; or --mpi-type TYPE for a "
                           "program of that MPI",
                           contract::kStartFailure});
  const auto plan =
      launcher::dry_run(request.job, request.allocation, environment, !is_dry || request.probes_hosts,
                        request.job.quiet ? nullptr : console.progress());
  if (!plan)
    return console.refuse(
        {plan.error().message(), "ddlrun --dry-run shows the plan", contract::kStartFailure});
  const auto line =
      launcher::make_srun_line(request.job, *request.allocation.slurm, *plan, environment, *type);
  if (!line)
    return console.refuse({line.error().message(), "without --launcher srun each node has its own plan"});
  if (!line->note.empty() && !request.job.quiet) console.note(line->note);
  if (is_dry) {
    if (!plan->asked_all && !request.job.quiet)
      console.note("the nodes were not asked, so nothing is bound here; --probe asks them");
    return console.print(shell_line(line->words) + "\n");
  }
  if (request.job.verbose) console.note(shell_line(line->words));
  return become_srun(*line, console);
}

}  // namespace ddl::cli
