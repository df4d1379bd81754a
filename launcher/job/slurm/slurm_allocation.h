// The nodes of a Slurm job as those of ours.
#pragma once

#include <string>

#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/slurm/slurm_job.h"

namespace ddl::launcher {

/// Its nodes with their slots: the tasks of a node if some were asked for, else its GPUs, else its tasks; up to its CPUs or
/// GPUs, whichever are more, without --oversubscribe. Pure.
Allocation allocation_of(const SlurmJob& job);

/// Those of the job that the user has chosen with -H or a hostfile, in that order, with the slots that were given there. Pure.
/// hostname: this machine's, which "localhost" means if it is one of them.
/// Error (kInvalidArgument): one that is not the job's, or that is to be reached as somebody else.
Result<Allocation> allocation_of(const SlurmJob& job, const Allocation& chosen, const std::string& hostname);

/// How many ranks are meant where -np is missing: the tasks that were asked for, else the GPUs, else one for each node.
int implied_num_proc(const SlurmJob& job);

}  // namespace ddl::launcher
