// The command that starts an agent on a node of a Slurm job.
#pragma once

#include <string>
#include <vector>

#include "launcher/job/allocation.h"
#include "launcher/job/environment.h"

namespace ddl::launcher {

/// argv of the srun whose one task is the agent and whose standard streams are its link. It takes all of the job's CPUs and GPUs
/// there, binds nothing, and shares the node with whatever else runs in the job. Pure. node must be one of the job's.
std::vector<std::string> srun_command(const SlurmJob& job, const AllocatedNode& node, const std::string& path,
                                      const std::string& nonce);

/// argv of the srun whose tasks, one on each of these nodes, are agents that are told on standard input whom to join. The nodes
/// must have the same CPUs and GPUs of the job. Pure.
std::vector<std::string> srun_crew_command(const SlurmJob& job, const std::vector<std::string>& names,
                                           const std::string& path, const std::string& nonce);

/// The environment without what would be a wish about that step: what salloc and sbatch were told about tasks, binding and
/// GPUs, which is about the user's own. Pure.
Environment srun_environment(const Environment& own);

}  // namespace ddl::launcher
