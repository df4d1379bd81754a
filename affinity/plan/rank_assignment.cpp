#include "affinity/plan/rank_assignment.h"

#include <map>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::affinity {

Status keep_cores(Assignment& assignment, const BindingPolicy& policy, const Topology& topology) {
  if (policy.cores_per_rank == 0) return {};
  for (std::size_t rank = 0; rank < assignment.ranks.size(); ++rank) {
    std::vector<int>& cores = assignment.ranks[rank].cores;
    const auto wanted = static_cast<std::size_t>(policy.cores_per_rank);
    if (cores.size() < wanted) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("--cores-per-rank {}: local rank {} has {} ({})", wanted, rank,
                              counted(static_cast<std::int64_t>(cores.size()), "usable core"),
                              assignment.ranks[rank].why));
    }
    cores.resize(wanted);
    CpuSet kept;
    for (const int core : cores) kept |= topology.cores[static_cast<std::size_t>(core)].cpus;
    assignment.ranks[rank].cpus = assignment.ranks[rank].cpus & kept;
  }
  return {};
}

Status allow_sharing(Assignment& assignment, const BindingPolicy& policy, const Topology& topology) {
  std::map<int, std::size_t> owner;
  for (std::size_t rank = 0; rank < assignment.ranks.size(); ++rank) {
    for (const int core : assignment.ranks[rank].cores) {
      const auto [first, is_new] = owner.try_emplace(core, rank);
      if (is_new) continue;
      const std::string shared = fmt::format("local ranks {} and {} {} the core of CPU {}", first->second,
                                             rank, policy.oversubscribe ? "share" : "would have to share",
                                             topology.cores[static_cast<std::size_t>(core)].cpus.first());
      if (!policy.oversubscribe) {
        return fail(ErrorCode::kInvalidArgument,
                    shared +
                        ": too few usable cores near their GPUs; --oversubscribe "
                        "allows it, --bind-to core takes cores anywhere");
      }
      assignment.warnings.push_back(shared + ", and others may");
      return {};
    }
  }
  return {};
}

}  // namespace ddl::affinity
