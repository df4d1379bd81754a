// Agents by srun, inside a Slurm job, so that its cgroups, accounting and scancel hold for them and their ranks:
// one srun for one agent or for the agents of several nodes, and a sentence about why it failed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "launcher/fleet/node_starter.h"

namespace ddl::launcher {

/// What is known about an srun that did not start an agent.
struct SrunAttempt {
  std::string path;                ///< of ddlrun on the node
  std::optional<int> wait_status;  ///< as from waitpid(2); nullopt: srun is still running
  std::string_view noise;          ///< standard output up to its end
  std::string_view errors;         ///< standard error, or its end
};

/// The reason without the node's name, with srun's own message in parentheses, and what to do next. Pure.
StartFailure describe_srun_failure(const SrunAttempt& attempt);

/// Each agent's link is the standard input and output of an srun process. path: of ddlrun on the nodes; own: the
/// environment of this process, which describes the job.
std::unique_ptr<NodeStarter> make_srun_starter(SlurmJob job, std::string path, const Environment& own);

/// Whether srun is in the PATH of this environment.
bool has_srun(const Environment& own);

/// Starts the agents of several nodes of a Slurm job by one srun. Nodes on which the job has the same numbers of
/// CPUs and GPUs share an srun: Slurm 22.05 refuses a step that requests different ones. Parameters as of
/// make_srun_starter().
std::unique_ptr<AgentGroupStarter> make_srun_group_starter(SlurmJob job, std::string path,
                                                           const Environment& own);

}  // namespace ddl::launcher
