#include "affinity/plan/planner.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "affinity/plan/cpu_ranks.h"
#include "affinity/plan/gpu_ranks.h"
#include "affinity/plan/usable_cores.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

/// What a rank's cores come to.
void complete(RankBinding& rank, const Topology& topology, const AssignedRank& own,
              const BindingPolicy& policy) {
  const std::vector<int>& cores = own.cores;
  CpuSet all;
  int l3 = topology.cores[static_cast<std::size_t>(cores.front())].l3;
  for (const int index : cores) {
    const Core& core = topology.cores[static_cast<std::size_t>(index)];
    if (policy.smt) {
      all |= core.cpus;
    } else {
      all.add(core.cpus.first());
    }
    const int numa = topology.numa_nodes[static_cast<std::size_t>(core.numa)].os_index;
    if (std::find(rank.numa_nodes.begin(), rank.numa_nodes.end(), numa) == rank.numa_nodes.end())
      rank.numa_nodes.push_back(numa);
    if (core.l3 != l3) l3 = -1;
  }
  rank.cpus = own.cpus.is_empty() ? all : own.cpus;
  std::sort(rank.numa_nodes.begin(), rank.numa_nodes.end());
  rank.first_cpu = rank.cpus.first();
  rank.threads = static_cast<int>(cores.size());
  rank.package = topology.cores[static_cast<std::size_t>(cores.front())].package;
  rank.l3 = l3;
}

}  // namespace

Result<BindingPlan> plan_binding(const Topology& topology, const BindingPolicy& policy, int local_ranks) {
  BindingPlan plan;
  plan.warnings = topology.warnings;
  if (policy.bind_to == BindTo::kNone || local_ranks <= 0) return plan;
  const UsableCores usable = usable_cores(topology, policy);
  if (usable.cores.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("no core is left for ranks: of {}, CPUs {} are reserved",
                            counted(static_cast<std::int64_t>(topology.cores.size()), "core"),
                            usable.reserved.list()));
  }
  const bool by_gpu =
      policy.bind_to == BindTo::kGpu || (policy.bind_to == BindTo::kAuto && !topology.gpus.empty());
  if (!by_gpu && (policy.gpus_per_rank > 0 || policy.ranks_per_gpu > 0)) {
    return fail(ErrorCode::kInvalidArgument,
                topology.gpus.empty()
                    ? "--gpus-per-rank and --ranks-per-gpu: this node has no GPU"
                    : std::string("--gpus-per-rank and --ranks-per-gpu need --bind-to gpu, not ") +
                          name_of(policy.bind_to));
  }
  int cpus = 0;
  for (const int core : usable.cores) cpus += topology.cores[static_cast<std::size_t>(core)].cpus.count();
  if (policy.bind_to == BindTo::kAuto && !by_gpu && local_ranks > cpus && policy.oversubscribe) {
    plan.warnings.push_back(
        fmt::format("{} for {}: ranks are bound to nothing, so that the system may move them",
                    counted(local_ranks, "rank"), counted(cpus, "CPU")));
    return plan;
  }
  auto assigned = by_gpu ? assign_by_gpu(topology, policy, usable, local_ranks)
                         : assign_by_cpu(topology, policy, usable, local_ranks);
  if (!assigned) return fail(std::move(assigned.error()));
  plan.binds_memory = policy.memory == MemoryBinding::kLocal;
  plan.warnings.insert(plan.warnings.end(), assigned->warnings.begin(), assigned->warnings.end());
  for (std::size_t rank = 0; rank < assigned->ranks.size(); ++rank) {
    AssignedRank& own = assigned->ranks[rank];
    RankBinding& binding = plan.ranks.emplace_back();
    binding.local_rank = static_cast<int>(rank);
    binding.gpus = std::move(own.gpus);
    binding.nics = std::move(own.nics);
    binding.why = std::move(own.why);
    complete(binding, topology, own, policy);
  }
  return plan;
}

}  // namespace ddl::affinity
