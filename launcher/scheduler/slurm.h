// Slurm: its job as the SLURM_* variables describe it, and steps by srun.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/command.h"
#include "base/environment.h"
#include "base/error.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::launcher {

const Scheduler& slurm();

// slurm_job.cpp

/// A number for each node, as Slurm writes them: "2(x3),1" is 2, 2, 2, 1. Pure. Error: an entry is not a positive
/// number, or there are more than `max_nodes`; repetitions are counted before they are expanded.
Result<std::vector<int>> parse_slurm_counts(std::string_view text, std::size_t max_nodes);

/// Scheduler::find_job() of Slurm. In a step (srun --pty bash) the result is the whole job. A heterogeneous job is an
/// error.
Result<std::optional<SchedulerJob>> slurm_job(const Environment& environment);
Status check_single_slurm_task(const Environment& environment);

// slurm_queue.cpp

/// squeue: the running jobs of this user with that name, for parse_slurm_jobs(). Without the variables by which a user
/// filters and formats what it prints.
Command squeue_of_jobs(const std::string& name);
/// Pure. Jobs whose nodes have unlike numbers of CPUs or GPUs have 0 there: unknown. Error: a line is not as that command
/// prints them.
Result<std::vector<SchedulerJob>> parse_slurm_jobs(std::string_view text);

// srun_environment.cpp

enum class SrunCall {
  kAgents,   ///< starts agents
  kRanks,    ///< starts the ranks itself
  kOfMpirun  ///< mpirun's own, which starts its daemons
};

/// The environment for a call of srun: without the variables that srun reads as options, and that would change what
/// ddlrun needs or plans. Those that say which job it is, and how the step in which the ranks run uses the hardware
/// (SLURM_NETWORK, SLURM_CPU_FREQ_REQ, ...), stay. Pure.
Environment srun_environment(const Environment& own, SrunCall call);

// slurm.cpp

/// Whether Slurm ends a job in this state, as squeue's %T prints it: "CANCELLED", "TIMEOUT". Pure.
bool is_ended_by_slurm(std::string_view state);

}  // namespace ddl::launcher
