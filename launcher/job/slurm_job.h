// The Slurm job that ddlrun runs in, as the SLURM_* variables describe it: its nodes, tasks, CPUs and GPUs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace ddl::launcher {

/// A number for each node, as Slurm writes them: "2(x3),1" is 2, 2, 2, 1. Pure. Error: an entry is not a positive
/// number, or there are more than `max_nodes`; repetitions are counted before they are expanded.
Result<std::vector<int>> parse_slurm_counts(std::string_view text, std::size_t max_nodes);

struct SlurmNode {
  std::string name;
  int cpus = 0;   ///< CPUs of the job on this node; 0: unknown
  int tasks = 0;  ///< tasks that Slurm would start there, at least 1
  int gpus = 0;   ///< GPUs of the job on this node; 0: none or unknown
  bool operator==(const SlurmNode&) const = default;
};

struct SlurmJob {
  std::string id;
  std::vector<SlurmNode> nodes;  ///< never empty
  std::optional<int> num_tasks;  ///< if the user asked for a number
  std::string partition;         ///< "" if unknown
};

/// The job with its resources: "Slurm job 4711 (2 nodes, 8 tasks, 16 GPUs, 256 CPUs)".
std::string described(const SlurmJob& job);

/// nullopt outside of Slurm. In a step (srun --pty bash) the result is the whole job. Pure.
/// Error (kInvalidArgument): one of Slurm's variables cannot be parsed, and is named; the job is heterogeneous; or
/// its number or its nodes are missing. The result is not nullopt in these cases, because ranks would then silently
/// start on this host, which may be a login host.
Result<std::optional<SlurmJob>> slurm_job(const Environment& environment);

/// Error (kInvalidArgument): srun has started this program as several tasks, each of which would start all ranks.
/// Pure.
Status check_single_task(const Environment& environment);

}  // namespace ddl::launcher
