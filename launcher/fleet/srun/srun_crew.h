// The agents of several nodes of a Slurm job by one srun.
#pragma once

#include <memory>
#include <string>

#include "launcher/fleet/node_starter.h"
#include "launcher/job/environment.h"

namespace ddl::launcher {

/// Nodes on which the job has the same CPUs and GPUs share an srun: Slurm 22.05 refuses a step that asks for different ones.
/// As make_srun_starter().
std::unique_ptr<CrewStarter> make_srun_crew_starter(SlurmJob job, std::string path, const Environment& own);

}  // namespace ddl::launcher
