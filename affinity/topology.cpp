#include "affinity/topology.h"

#include <algorithm>

namespace ddl::affinity {
namespace {

template <class T>
bool is_in(int position, const std::vector<T>& all) {
  return position >= 0 && static_cast<std::size_t>(position) < all.size();
}

}  // namespace

bool is_consistent(const Topology& topology) {
  const auto is_placed = [&](const Core& core) {
    return !core.cpus.is_empty() && core.cpus.is_subset_of(topology.allowed) &&
           is_in(core.package, topology.packages) && is_in(core.numa, topology.numa_nodes) &&
           (core.l3 == -1 || is_in(core.l3, topology.l3s));
  };
  const auto is_near = [&](const auto& device) {
    return device.numa == -1 || is_in(device.numa, topology.numa_nodes);
  };
  // A plan makes sets of their numbers, as of those of CPUs.
  const auto is_numbered = [](const NumaNode& node) {
    return node.os_index >= 0 && node.os_index < kMostCpus;
  };
  return !topology.cores.empty() &&
         std::all_of(topology.numa_nodes.begin(), topology.numa_nodes.end(), is_numbered) &&
         std::all_of(topology.cores.begin(), topology.cores.end(), is_placed) &&
         std::all_of(topology.gpus.begin(), topology.gpus.end(), is_near) &&
         std::all_of(topology.nics.begin(), topology.nics.end(), is_near);
}

}  // namespace ddl::affinity
