// The command lines of srun: the one that starts agents on nodes of a Slurm job, and the one that starts the ranks
// itself, without agents.
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

/// argv of the srun whose only task is the agent and whose standard streams are its link. The step uses all of the
/// job's CPUs and GPUs on the node, binds nothing, and shares them with other steps of the job. Pure. node must be
/// one of the job's.
std::vector<std::string> srun_command(const SlurmJob& job, const AllocatedNode& node, const std::string& path,
                                      const std::string& nonce);

/// argv of the srun whose tasks, one on each of these nodes, are agents that read a Join from standard input. The
/// job must have the same numbers of CPUs and GPUs on all of these nodes. Pure.
std::vector<std::string> srun_group_command(const SlurmJob& job, const std::vector<std::string>& names,
                                            const std::string& path, const std::string& nonce);

enum class SrunCall {
  kAgents,   ///< starts agents
  kRanks,    ///< starts the ranks itself
  kOfMpirun  ///< mpirun's own, which starts its daemons
};

/// The environment for a call of srun: without the variables that srun reads as options, and that would change what
/// ddlrun needs or plans. Those that say which job it is, and how the step in which the ranks run uses the hardware
/// (SLURM_NETWORK, SLURM_CPU_FREQ_REQ, ...), stay. Pure.
Environment srun_environment(const Environment& own, SrunCall call);

/// The srun that starts a job's ranks itself, without agents.
struct SrunLine {
  std::vector<std::string> words;  ///< argv
  Environment environment;         ///< all of its environment, which the ranks inherit
  std::string note;                ///< a sentence for the user; "": none
};

/// The plan as options of srun: nodes, ranks, --cpu-bind with the plan's masks, and a variable that selects the
/// GPUs of each rank. Pure. Nodes that were not asked have no binding in the plan. If ranks would be bound to more
/// CPUs than the job holds on a node, because Slurm does not confine the job to its CPUs, srun binds them, unless a
/// binding was asked for. mpi_type: for --mpi; "" for none. Error (kInvalidArgument): the plan is not possible with
/// one srun: nodes with different numbers of ranks or different masks, or a binding to CPUs that are not the job's.
Result<SrunLine> make_srun_line(const JobSpec& spec, const SlurmJob& job, const DryPlan& plan,
                                const Environment& head_environment, const std::string& mpi_type);

}  // namespace ddl::launcher
