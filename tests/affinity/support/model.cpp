#include "affinity/support/model.h"

#include <fmt/format.h>

namespace ddl::affinity::test {

CpuSet Model::threads_of(int first, int count) const {
  CpuSet cpus;
  for (int thread = 0; thread < threads; ++thread)
    cpus |= CpuSet::range(first + thread * cores(), first + count - 1 + thread * cores());
  return cpus;
}

CpuSet Model::numa_cpus(int numa) const {
  const int width = l3s_per_numa * cores_per_l3;
  return threads_of(numa * width, width);
}

CpuSet Model::l3_cpus(int l3) const { return threads_of(l3 * cores_per_l3, cores_per_l3); }

Topology Model::topology(const CpuSet& allowed) const {
  Topology topology;
  topology.source = "a model";
  topology.complete = threads_of(0, cores());
  topology.allowed = allowed.is_empty() ? topology.complete : allowed;
  const int per_package = cores() / packages;
  for (int package = 0; package < packages; ++package) {
    const CpuSet all = threads_of(package * per_package, per_package);
    topology.packages.push_back({package, all & topology.allowed, all});
  }
  for (int numa = 0; numa < packages * numa_per_package; ++numa)
    topology.numa_nodes.push_back(
        {numa, numa_cpus(numa) & topology.allowed, numa_cpus(numa), std::uint64_t{64} << 30});
  for (int l3 = 0; tells_l3s && l3 < packages * numa_per_package * l3s_per_numa; ++l3)
    topology.l3s.push_back({l3, l3_cpus(l3) & topology.allowed, l3_cpus(l3)});
  for (int index = 0; index < cores(); ++index) {
    Core core;
    core.cpus = threads_of(index, 1) & topology.allowed;
    if (core.cpus.is_empty()) continue;
    core.package = index / per_package;
    core.numa = index / (l3s_per_numa * cores_per_l3);
    core.l3 = tells_l3s ? index / cores_per_l3 : -1;
    topology.cores.push_back(core);
  }
  return topology;
}

namespace {

void add_gpu(Topology& topology, const CpuSet& near, int numa) {
  Gpu gpu;
  gpu.index = static_cast<int>(topology.gpus.size());
  gpu.vendor = GpuVendor::kAmd;
  gpu.bus_id = fmt::format("0000:{:02x}:00.0", 0xc0 + gpu.index);
  gpu.complete_local_cpus = near;
  gpu.local_cpus = near & topology.allowed;
  gpu.numa = numa;
  topology.gpus.push_back(std::move(gpu));
}

}  // namespace

void add_gpus_on_numa(Topology& topology, const std::vector<int>& numa) {
  for (const int node : numa)
    add_gpu(topology, topology.numa_nodes[static_cast<std::size_t>(node)].complete, node);
}

void add_gpus_on_l3(Topology& topology, const std::vector<int>& l3s) {
  for (const int l3 : l3s) {
    const CpuSet& near = topology.l3s[static_cast<std::size_t>(l3)].complete;
    int numa = -1;
    for (std::size_t node = 0; node < topology.numa_nodes.size(); ++node) {
      if (near.is_subset_of(topology.numa_nodes[node].complete)) numa = static_cast<int>(node);
    }
    add_gpu(topology, near, numa);
  }
}

Model ex235a() {
  Model model;
  model.numa_per_package = 4;
  model.l3s_per_numa = 2;
  model.cores_per_l3 = 8;
  model.threads = 2;
  return model;
}

}  // namespace ddl::affinity::test
