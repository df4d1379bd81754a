#include "affinity/output/node_map.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::affinity {
namespace {

std::vector<int> ranks_on(const BindingPlan& plan, const Core& core) {
  std::vector<int> ranks;
  for (const RankBinding& rank : plan.ranks) {
    if (rank.cpus.intersects(core.cpus)) ranks.push_back(rank.local_rank);
  }
  return ranks;
}

/// Vendors count their GPUs apart from each other, so with several of them a number needs the vendor.
DeviceMark mark_of(const BindingPlan& plan, const Gpu& gpu, bool has_several_vendors) {
  DeviceMark mark{fmt::format("{}GPU {}{}", has_several_vendors ? name_of(gpu.vendor) + std::string(" ") : "",
                              gpu.index, gpu.bus_id.empty() ? "" : " (" + gpu.bus_id + ")"),
                  {},
                  true};
  for (const RankBinding& rank : plan.ranks) {
    const bool has_it = std::any_of(rank.gpus.begin(), rank.gpus.end(), [&](const AssignedGpu& own) {
      return own.vendor == gpu.vendor && own.index == gpu.index && own.bus_id == gpu.bus_id;
    });
    if (has_it) mark.ranks.push_back(rank.local_rank);
  }
  return mark;
}

DeviceMark mark_of(const BindingPlan& plan, const Nic& nic) {
  DeviceMark mark{nic.name.empty() ? "NIC (" + nic.bus_id + ")" : nic.name, {}, false};
  for (const RankBinding& rank : plan.ranks) {
    const bool has_it = std::find(rank.nics.begin(), rank.nics.end(), nic.name) != rank.nics.end();
    if (has_it && !nic.name.empty()) mark.ranks.push_back(rank.local_rank);
  }
  return mark;
}

std::string name_of(const NumaNode& node) {
  std::string name = fmt::format("NUMA node {}", node.os_index);
  if (node.memory_bytes > 0) name += fmt::format(", {:.0f} GB", static_cast<double>(node.memory_bytes) / 1e9);
  return name;
}

/// The cores of a NUMA node, by L3.
std::vector<L3Map> l3s_of(const Topology& topology, const BindingPlan& plan, int numa) {
  std::vector<L3Map> l3s;
  std::optional<int> last;
  for (int i = 0; i < std::ssize(topology.cores); ++i) {
    const Core& core = topology.cores[i];
    if (core.numa != numa) continue;
    if (core.l3 != last) l3s.push_back({core.l3 < 0 ? "" : "L3", {}});
    last = core.l3;
    l3s.back().cores.push_back({i, ranks_on(plan, core)});
  }
  return l3s;
}

}  // namespace

NodeMap map_of(const Topology& topology, const BindingPlan& plan) {
  NodeMap map;
  for (const CpuDomain& package : topology.packages)
    map.packages.push_back(
        {topology.packages.size() > 1 ? fmt::format("package {}", package.os_index) : "", {}});
  const bool has_several_vendors = !mixed_vendors(topology).empty();
  const auto add_devices = [&](int numa, std::vector<DeviceMark>& devices) {
    for (const Gpu& gpu : topology.gpus) {
      if (gpu.numa == numa) devices.push_back(mark_of(plan, gpu, has_several_vendors));
    }
    for (const Nic& nic : topology.nics) {
      if (nic.numa == numa) devices.push_back(mark_of(plan, nic));
    }
  };
  for (int i = 0; i < std::ssize(topology.numa_nodes); ++i) {
    const NumaNode& node = topology.numa_nodes[i];
    NumaMap numa{name_of(node), l3s_of(topology, plan, i), {}};
    add_devices(i, numa.devices);
    std::size_t package = 0;
    while (package + 1 < topology.packages.size() &&
           !topology.packages[package].complete.intersects(node.complete))
      ++package;
    std::vector<std::string> shared_by;
    for (const CpuDomain& one : topology.packages) {
      if (one.complete.intersects(node.complete)) shared_by.push_back(std::to_string(one.os_index));
    }
    if (shared_by.size() > 1) map.packages[package].name = "packages " + join(shared_by, ",");
    // A NUMA node without cores or devices, such as a GPU's memory, is not shown: no rank can run there.
    if (!numa.l3s.empty() || !numa.devices.empty())
      map.packages[package].numa_nodes.push_back(std::move(numa));
  }
  // Packages that share a NUMA node are shown as one, at the position of the first.
  std::erase_if(map.packages, [](const PackageMap& package) { return package.numa_nodes.empty(); });
  add_devices(-1, map.elsewhere);
  return map;
}

}  // namespace ddl::affinity
