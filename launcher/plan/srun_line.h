// The srun that starts a job's ranks itself, without agents.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/job/environment.h"
#include "launcher/job/job_spec.h"
#include "launcher/job/slurm/slurm_job.h"
#include "launcher/plan/dry_plan.h"

namespace ddl::launcher {

struct SrunLine {
  std::vector<std::string> words;  ///< argv
  Environment environment;         ///< all of its environment, which the ranks inherit
  std::string note;                ///< what a person should know of it; "": nothing
};

/// What the plan says, in srun's words: nodes, ranks, --cpu-bind with our masks, the GPUs of each rank by its variable. Pure.
/// Of a plan whose nodes were not all asked, nothing is bound. Where ranks would be bound to more CPUs than the job holds on a node,
/// since nothing keeps it to its own, srun binds them, unless a binding was asked for. mpi_type: for --mpi; "" for none.
/// Error kInvalidArgument: what one srun cannot do, such as nodes with different numbers of ranks or different masks, or a binding
/// to CPUs that are not the job's.
Result<SrunLine> make_srun_line(const JobSpec& spec, const SlurmJob& job, const DryPlan& plan,
                                const Environment& head_environment, const std::string& mpi_type);

}  // namespace ddl::launcher
