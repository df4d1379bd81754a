// Inside a Slurm job, ranks find what srun would have told them: programs read it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/job/environment.h"
#include "launcher/plan/placement.h"

namespace ddl::launcher {

/// What all ranks are told: how many they are, on which nodes. Pure.
Environment slurm_job_environment(const Placement& placement);

/// What differs: SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID and SLURM_GTIDS. Pure.
Environment slurm_rank_environment(const Placement& placement, const RankPlacement& rank);

/// What each node's own step tells of itself: ranks get that of their node, not that of where ddlrun was typed.
std::vector<std::string> slurm_node_variables();

/// True for what salloc, sbatch, srun or an mpirun's daemon has said about another process than a rank: which task it is of how many,
/// its binding, and how to reach its PMI. A rank that finds itself in it takes it for its own.
bool is_of_slurm_task(std::string_view name);

}  // namespace ddl::launcher
