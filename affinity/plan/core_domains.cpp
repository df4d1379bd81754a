#include "affinity/plan/core_domains.h"

#include <map>

#include <fmt/format.h>

namespace ddl::affinity {
namespace {

/// The domains of a kind, by their first core.
template <class Of, class Name>
std::vector<Domain> domains_by(const Topology& topology, const UsableCores& usable, Of of, Name name) {
  std::vector<Domain> domains;
  std::map<int, std::size_t> place;
  for (const int core : usable.cores) {
    const int key = of(topology.cores[static_cast<std::size_t>(core)], core);
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
          [&](int key) {
            return fmt::format("package {}", topology.packages[static_cast<std::size_t>(key)].os_index);
          });
    case BindTo::kNuma:
      return domains_by(
          topology, usable, [](const Core& core, int) { return core.numa; },
          [&](int key) {
            return fmt::format("NUMA node {}", topology.numa_nodes[static_cast<std::size_t>(key)].os_index);
          });
    case BindTo::kL3:
      return domains_by(
          topology, usable, [](const Core& core, int) { return core.l3; },
          [&](int key) { return key < 0 ? "cores without an L3" : fmt::format("L3 {}", key); });
    default:
      return domains_by(
          topology, usable, [](const Core&, int core) { return core; },
          [&](int key) {
            return fmt::format("the core of CPU {}",
                               topology.cores[static_cast<std::size_t>(key)].cpus.first());
          });
  }
}

std::vector<Pu> pus_of(const Topology& topology, const UsableCores& usable) {
  std::vector<Pu> pus;
  for (const int core : usable.cores) {
    for (const int cpu : topology.cores[static_cast<std::size_t>(core)].cpus.cpus())
      pus.push_back({core, cpu});
  }
  return pus;
}

}  // namespace ddl::affinity
