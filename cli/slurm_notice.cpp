#include "cli/slurm_notice.h"

#include "base/text.h"

namespace ddl::cli {

std::optional<std::string> slurm_notice(const launcher::Environment& environment) {
  const std::string job = launcher::value_of(environment, "SLURM_JOB_ID");
  // salloc's own shell is a step of one task; srun -n 4 ddlrun is four ddlruns.
  const auto tasks = parse_integer(launcher::value_of(environment, "SLURM_STEP_NUM_TASKS"));
  if (job.empty() || !tasks || *tasks < 2) return std::nullopt;
  return "inside Slurm job " + job + ": srun started ddlrun " + std::to_string(*tasks) +
         " times, and each one starts all ranks of a job of its own on its own node; start ddlrun once, "
         "without srun";
}

}  // namespace ddl::cli
