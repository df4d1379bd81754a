// The Slurm job that ddlrun finds itself in, as the SLURM_* variables describe it: its nodes, tasks, CPUs and GPUs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace ddl::launcher {

// "2(x3),1": a number for each node, as Slurm writes them.

/// 2, 2, 2, 1. Pure. Error: what is no positive number, or more than `most` of them; nothing is made of a repetition before it
/// has been counted.
Result<std::vector<int>> parse_slurm_counts(std::string_view text, std::size_t most);

// The Slurm job that ddlrun finds itself in, as its environment tells it.

struct SlurmNode {
  std::string name;
  int cpus = 0;   ///< that the job has there; 0: unknown
  int tasks = 0;  ///< as Slurm would start there; without a number asked for, as many as CPUs or one
  int gpus = 0;   ///< that the job has there; 0: none, or the environment does not tell
  bool operator==(const SlurmNode&) const = default;
};

struct SlurmJob {
  std::string id;
  std::vector<SlurmNode> nodes;  ///< never empty
  std::optional<int> num_tasks;  ///< if the user asked for a number
  std::string partition;         ///< "" if unknown
};

/// "Slurm job 4711 (2 nodes, 8 tasks, 16 GPUs, 256 CPUs)": what it has.
std::string described(const SlurmJob& job);

/// Nothing outside of Slurm. In a step (srun --pty bash) it is the whole job. Pure.
/// Error (kInvalidArgument): a variable that Slurm has set cannot be read, with its name; the variables are of a job that is not
/// understood: a heterogeneous one, or one without its number or its nodes. Never nothing then: ranks would silently start
/// here, on the login host.
Result<std::optional<SlurmJob>> slurm_job(const Environment& environment);

/// Error (kInvalidArgument): srun has started several of this process, each of which would take the whole job for its own. Pure.
Status check_single_task(const Environment& environment);

}  // namespace ddl::launcher
