// Agents by srun, inside a Slurm job, so that its cgroups, accounting and scancel hold for them and their ranks: one srun
// for one agent or for the agents of several nodes, and a sentence about why it failed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "launcher/fleet/node_starter.h"

namespace ddl::launcher {

// What srun said when it could not start an agent, as one sentence for a person.

/// What is known about an attempt that has failed.
struct SrunAttempt {
  std::string path;                ///< of ddlrun over there
  std::optional<int> wait_status;  ///< as from waitpid(2); nullopt: srun goes on
  std::string_view noise;          ///< standard output up to its end
  std::string_view errors;         ///< standard error, or its end
};

/// The reason without the node's name, srun's own words quoted, and what to do next. Pure.
StartFailure describe_srun_failure(const SrunAttempt& attempt);

// Agents by srun, inside a Slurm job: its cgroups, accounting and scancel hold for them and their ranks.

/// Each agent's link is the standard input and output of an srun process of ours. path: of ddlrun on the nodes; own: the
/// environment that tells of the job.
std::unique_ptr<NodeStarter> make_srun_starter(SlurmJob job, std::string path, const Environment& own);

/// Whether srun is in the PATH of this environment.
bool has_srun(const Environment& own);

// The agents of several nodes of a Slurm job by one srun.

/// Nodes on which the job has the same CPUs and GPUs share an srun: Slurm 22.05 refuses a step that asks for different ones.
/// As make_srun_starter().
std::unique_ptr<AgentGroupStarter> make_srun_group_starter(SlurmJob job, std::string path,
                                                           const Environment& own);

}  // namespace ddl::launcher
