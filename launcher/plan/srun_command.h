// The command lines of srun: the one that starts agents on nodes of a Slurm job, and the one that starts the ranks itself,
// without agents.
#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/job/slurm_job.h"
#include "launcher/plan/launch_plan.h"

namespace ddl::launcher {

// The command that starts an agent on a node of a Slurm job.

/// argv of the srun whose one task is the agent and whose standard streams are its link. It takes all of the job's CPUs and GPUs
/// there, binds nothing, and shares the node with whatever else runs in the job. Pure. node must be one of the job's.
std::vector<std::string> srun_command(const SlurmJob& job, const AllocatedNode& node, const std::string& path,
                                      const std::string& nonce);

/// argv of the srun whose tasks, one on each of these nodes, are agents that are told on standard input whom to join. The nodes
/// must have the same CPUs and GPUs of the job. Pure.
std::vector<std::string> srun_group_command(const SlurmJob& job, const std::vector<std::string>& names,
                                            const std::string& path, const std::string& nonce);

/// The environment without what would be a wish about that step: what salloc and sbatch were told about tasks, binding and
/// GPUs, which is about the user's own. Pure.
Environment srun_environment(const Environment& own);

// The srun that starts a job's ranks itself, without agents.

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
