#include "affinity/source/node_model.h"

#include <fmt/format.h>

namespace ddl::affinity {
namespace {

/// More than any machine has: refuses a number with a zero too many.
constexpr std::int64_t kMaxModelCpus = 8192;

/// Numbers CPUs, cores, L3s and so on from the bottom of the tree up.
class Builder {
 public:
  explicit Builder(const NodeModel& model)
      : model_(model),
        l3s_(model.packages * model.numa_per_package * model.l3s_per_numa),
        cores_(l3s_ * model.cores_per_l3) {}

  Topology build(const std::string& source) const {
    Topology topology;
    topology.source = source;
    topology.board = model_.board;
    topology.complete = CpuSet::range(0, cores_ * model_.threads_per_core - 1);
    const int numa_nodes = model_.packages * model_.numa_per_package;
    for (int i = 0; i < l3s_; ++i) topology.l3s.push_back({i, {}, cpus_of_part(i, l3s_)});
    topology.allowed = allowed(topology);
    for (CpuDomain& l3 : topology.l3s) l3.cpus = l3.complete & topology.allowed;
    for (int i = 0; i < model_.packages; ++i) {
      const CpuSet all = cpus_of_part(i, model_.packages);
      topology.packages.push_back({i, all & topology.allowed, all});
    }
    for (int i = 0; i < numa_nodes; ++i) {
      const CpuSet all = cpus_of_part(i, numa_nodes);
      topology.numa_nodes.push_back({i, all & topology.allowed, all, model_.numa_memory_bytes});
    }
    for (int i = 0; i < cores_; ++i) {
      const CpuSet cpus = cpus_of_core(i) & topology.allowed;
      const auto place = [&](int parts) { return i / (cores_ / parts); };
      topology.numbered_cores.push_back({cpus_of_core(i), place(model_.packages)});
      if (!cpus.is_empty())
        topology.cores.push_back({cpus, place(model_.packages), place(numa_nodes), place(l3s_)});
    }
    add_devices(topology);
    return topology;
  }

 private:
  CpuSet cpus_of_core(int core) const {
    CpuSet cpus;
    for (int thread = 0; thread < model_.threads_per_core; ++thread) {
      cpus.add(model_.threads == NodeModel::Threads::kAcross ? core + thread * cores_
                                                             : core * model_.threads_per_core + thread);
    }
    return cpus;
  }
  CpuSet cpus_of_part(int part, int parts) const {
    CpuSet cpus;
    for (int core = part * (cores_ / parts); core < (part + 1) * (cores_ / parts); ++core)
      cpus |= cpus_of_core(core);
    return cpus;
  }
  CpuSet allowed(const Topology& topology) const {
    const CpuSet reserved = reserved_cpus(model_.reserved, topology.l3s);
    CpuSet cpus;
    for (int core = 0; core < cores_; ++core) {
      if (const CpuSet own = cpus_of_core(core); !own.intersects(reserved)) cpus |= own;
    }
    return cpus;
  }
  void add_devices(Topology& topology) const {
    for (int i = 0; i < std::ssize(model_.gpu_numa); ++i) {
      const int numa = model_.gpu_numa[i];
      const NumaNode& near = topology.numa_nodes[numa];
      Gpu gpu;
      gpu.index = i;
      gpu.vendor = model_.gpu_vendor;
      gpu.model = model_.gpu_model;
      gpu.local_cpus = near.cpus;
      gpu.complete_local_cpus = near.complete;
      gpu.numa = numa;
      gpu.locality_from = "node model";
      topology.gpus.push_back(std::move(gpu));
    }
    for (const NodeModel::Nic& one : model_.nics) {
      Nic nic;
      nic.name = one.name;
      nic.local_cpus = topology.numa_nodes[one.numa].complete;
      nic.numa = one.numa;
      topology.nics.push_back(std::move(nic));
    }
  }

  const NodeModel& model_;
  int l3s_;
  int cores_;
};

Status check(const NodeModel& model) {
  std::int64_t cpus = 1;
  for (const int count : {model.packages, model.numa_per_package, model.l3s_per_numa, model.cores_per_l3,
                          model.threads_per_core}) {
    if (count < 1)
      return fail(ErrorCode::kInvalidArgument,
                  "a number of packages, NUMA nodes, L3 caches, cores or threads is below 1");
    cpus *= count;
    if (cpus > kMaxModelCpus)
      return fail(ErrorCode::kInvalidArgument, fmt::format("the node has more than {} CPUs", kMaxModelCpus));
  }
  const int numa_nodes = model.packages * model.numa_per_package;
  const auto is_there = [&](int numa) { return numa >= 0 && numa < numa_nodes; };
  for (std::size_t i = 0; i < model.gpu_numa.size(); ++i) {
    if (is_there(model.gpu_numa[i])) continue;
    return fail(ErrorCode::kInvalidArgument, fmt::format("GPU {} is on NUMA node {}, and the node has {}", i,
                                                         model.gpu_numa[i], numa_nodes));
  }
  for (const NodeModel::Nic& nic : model.nics) {
    if (is_there(nic.numa)) continue;
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is on NUMA node {}, and the node has {}", nic.name, nic.numa, numa_nodes));
  }
  return {};
}

}  // namespace

Result<Topology> topology_of_model(const NodeModel& model, const std::string& source) {
  if (auto checked = check(model); !checked) return fail(std::move(checked.error()).during(source));
  Topology topology = Builder(model).build(source);
  if (topology.cores.empty()) return fail(ErrorCode::kInvalidArgument, source + ": every core is reserved");
  return topology;
}

}  // namespace ddl::affinity
