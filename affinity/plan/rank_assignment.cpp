#include "affinity/plan/rank_assignment.h"

#include <map>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::affinity {

Status keep_cores(Assignment& assignment, const BindingPolicy& policy, const Topology& topology) {
  if (policy.cores_per_rank == 0) return {};
  for (std::size_t rank = 0; rank < assignment.ranks.size(); ++rank) {
    std::vector<int>& cores = assignment.ranks[rank].cores;
    const int wanted = policy.cores_per_rank;
    if (std::ssize(cores) < wanted) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("--cores-per-rank {}: local rank {} has {} ({})", wanted, rank,
                              counted(cores.size(), "usable core"), assignment.ranks[rank].why));
    }
    cores.resize(wanted);
    CpuSet kept;
    for (const int core : cores) kept |= topology.cores[core].cpus;
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
                                             topology.cores[core].cpus.first());
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

namespace {

/// The domains of a kind, by their first core.
template <class Of, class Name>
std::vector<Domain> domains_by(const Topology& topology, const UsableCores& usable, Of of, Name name) {
  std::vector<Domain> domains;
  std::map<int, std::size_t> place;
  for (const int core : usable.cores) {
    const int key = of(topology.cores[core], core);
    const auto [at, is_new] = place.try_emplace(key, domains.size());
    if (is_new) domains.push_back({{}, name(key)});
    domains[at->second].cores.push_back(core);
  }
  return domains;
}

}  // namespace

std::vector<Domain> domains_of(const Topology& topology, const UsableCores& usable, BindTo kind) {
  switch (kind) {
    case BindTo::kSocket:
      return domains_by(
          topology, usable, [](const Core& core, int) { return core.package; },
          [&](int key) { return fmt::format("package {}", topology.packages[key].os_index); });
    case BindTo::kNuma:
      return domains_by(
          topology, usable, [](const Core& core, int) { return core.numa; },
          [&](int key) { return fmt::format("NUMA node {}", topology.numa_nodes[key].os_index); });
    case BindTo::kL3:
      return domains_by(
          topology, usable, [](const Core& core, int) { return core.l3; },
          [&](int key) { return key < 0 ? "cores without an L3" : fmt::format("L3 {}", key); });
    default:
      return domains_by(
          topology, usable, [](const Core&, int core) { return core; },
          [&](int key) { return fmt::format("the core of CPU {}", topology.cores[key].cpus.first()); });
  }
}

std::vector<Pu> pus_of(const Topology& topology, const UsableCores& usable) {
  std::vector<Pu> pus;
  for (const int core : usable.cores) {
    for (const int cpu : topology.cores[core].cpus.cpus()) pus.push_back({core, cpu});
  }
  return pus;
}

}  // namespace ddl::affinity
