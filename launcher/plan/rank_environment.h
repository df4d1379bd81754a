// The environment that a rank is started with: the head's own, -x, the identity of the rank, and in a Slurm job what srun
// would have set. Pure: text in, text out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/node_facts.h"
#include "launcher/plan/placement.h"

namespace ddl::launcher {

// The environment that a rank is started with. Pure: text in, text out.

/// True for what must not reach ranks: what an outer launcher (PMIx, PMI, Open MPI) told *this* process about itself,
/// and what belongs to ddlrun's own session. docs/reference/environment.md lists it.
bool is_denied(std::string_view name);

/// True for what ddlrun sets for each rank: its identity, and where it meets the others. One value for all ranks, as -x
/// would set it, would make them all the same rank.
bool is_set_for_every_rank(std::string_view name);

/// What all ranks share: the head's environment without the denied names, then what makes Open MPI 4.1 accept a PMIx
/// server that is not its own, then -x, then defaults that nobody has set (PYTHONUNBUFFERED).
Environment common_environment(const Environment& head, const std::vector<EnvironmentExport>& exports);

/// The names of what describes a login on one machine rather than the job: HOME, USER, SSH_CONNECTION, ...; without those
/// that -x has set or passed on.
std::vector<std::string> login_variables(const std::vector<EnvironmentExport>& exports);

/// What differs by rank: identity as Horovod and torch name it, and OMP_NUM_THREADS unless common has it.
/// node: the facts of the rank's own node; master_address and master_port: where ranks reach rank 0.
Environment rank_environment(const RankPlacement& rank, int size, const NodeFacts& node,
                             const std::string& master_address, int master_port, const Environment& common);

// Inside a Slurm job, ranks find what srun would have told them: programs read it.

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
