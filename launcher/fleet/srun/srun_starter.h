// Agents by srun, inside a Slurm job: its cgroups, accounting and scancel hold for them and their ranks.
#pragma once

#include <memory>
#include <string>

#include "launcher/fleet/node_starter.h"
#include "launcher/job/environment.h"

namespace ddl::launcher {

/// Each agent's link is the standard input and output of an srun process of ours. path: of ddlrun on the nodes; own: the
/// environment that tells of the job.
std::unique_ptr<NodeStarter> make_srun_starter(SlurmJob job, std::string path, const Environment& own);

/// Whether srun is in the PATH of this environment.
bool has_srun(const Environment& own);

}  // namespace ddl::launcher
