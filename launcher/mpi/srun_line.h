// The srun that starts the ranks of a Slurm job itself, without agents.
#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/launch_plan.h"

namespace ddl::launcher {

struct SrunLine {
  std::vector<std::string> words;  ///< argv
  Environment environment;         ///< all of its environment, which the ranks inherit
  std::string note;                ///< a sentence for the user; "": none
};

/// The plan as options of srun: nodes, ranks, --cpu-bind with the plan's masks, and a variable that selects the
/// GPUs of each rank. Pure. Nodes that were not asked have no binding in the plan. If ranks would be bound to more
/// CPUs than the job holds on a node, because Slurm does not confine the job to its CPUs, srun binds them, unless a
/// binding was asked for. mpi_type: for --mpi; "" for none. more_options: the user's own, which win because srun reads
/// them last. Error (kInvalidArgument): the plan is not possible with one srun: nodes with different numbers of ranks,
/// masks or paths of --as-horovod, or a binding to CPUs that are not the job's.
Result<SrunLine> make_srun_line(const JobSpec& spec, const SchedulerJob& job, const DryPlan& plan,
                                const Environment& head_environment, const std::string& mpi_type,
                                const std::vector<std::string>& more_options = {});

}  // namespace ddl::launcher
