#include "launcher/plan/slurm_environment.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace ddl::launcher {
namespace {

std::string list_of(const std::vector<int>& numbers) {
  std::vector<std::string> texts;
  for (const int number : numbers) texts.push_back(std::to_string(number));
  return join(texts, ",");
}

}  // namespace

Environment slurm_job_environment(const Placement& placement) {
  std::vector<std::string> names;
  std::vector<int> tasks;
  for (const PlacedNode& node : placement.nodes) {
    names.push_back(node.name);
    tasks.push_back(static_cast<int>(node.ranks.size()));
  }
  const std::string size = std::to_string(placement.ranks.size());
  const std::string nodes = std::to_string(names.size());
  const std::string list = join(names, ","), per_node = list_of(tasks);
  Environment environment = {{"SLURM_NTASKS", size},
                             {"SLURM_NPROCS", size},
                             {"SLURM_NNODES", nodes},
                             {"SLURM_NODELIST", list},
                             {"SLURM_TASKS_PER_NODE", per_node},
                             {"SLURM_STEP_NUM_TASKS", size},
                             {"SLURM_STEP_NUM_NODES", nodes},
                             {"SLURM_STEP_NODELIST", list},
                             {"SLURM_STEP_TASKS_PER_NODE", per_node}};
  const bool is_even = std::all_of(tasks.begin(), tasks.end(), [&](int one) { return one == tasks.front(); });
  if (is_even) environment["SLURM_NTASKS_PER_NODE"] = std::to_string(tasks.front());
  return environment;
}

Environment slurm_rank_environment(const Placement& placement, const RankPlacement& rank) {
  return {{"SLURM_PROCID", std::to_string(rank.rank)},
          {"SLURM_LOCALID", std::to_string(rank.local_rank)},
          {"SLURM_NODEID", std::to_string(rank.node)},
          {"SLURM_GTIDS", list_of(placement.nodes[static_cast<std::size_t>(rank.node)].ranks)}};
}

std::vector<std::string> slurm_node_variables() {
  return {"SLURM_STEP_ID",
          "SLURM_STEPID",
          "SLURMD_NODENAME",
          "SLURM_CPUS_ON_NODE",
          "SLURM_GPUS_ON_NODE",
          "SLURM_STEP_GPUS",
          "SLURM_JOB_GPUS",
          "SLURM_LAUNCH_NODE_IPADDR",
          "SLURM_SRUN_COMM_HOST",
          "SLURM_TOPOLOGY_ADDR",
          "SLURM_TOPOLOGY_ADDR_PATTERN"};
}

bool is_of_slurm_task(std::string_view name) {
  constexpr std::array<std::string_view, 16> kPrefixes = {
      "SLURM_PROCID",         "SLURM_LOCALID",      "SLURM_NODEID",   "SLURM_GTIDS",
      "SLURM_NTASKS",         "SLURM_NPROCS",       "SLURM_STEP",     "SLURM_TASK_PID",
      "SLURM_TASKS_PER_NODE", "SLURM_DISTRIBUTION", "SLURM_CPU_BIND", "SLURM_MEM_BIND",
      "SLURM_GPU_BIND",       "SLURM_PMI",          "SLURM_MPI_TYPE", "SLURM_PTY_"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace ddl::launcher
