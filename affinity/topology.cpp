#include "affinity/topology.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace ddl::affinity {
namespace {

template <class T>
bool is_in(int position, const std::vector<T>& all) {
  return position >= 0 && position < std::ssize(all);
}

}  // namespace

bool is_consistent(const Topology& topology) {
  const auto is_placed = [&](const Core& core) {
    return !core.cpus.is_empty() && core.cpus.is_subset_of(topology.allowed) &&
           is_in(core.package, topology.packages) && is_in(core.numa, topology.numa_nodes) &&
           (core.l3 == -1 || is_in(core.l3, topology.l3s)) &&
           (topology.core_kinds.empty() ? core.kind == 0 : is_in(core.kind, topology.core_kinds));
  };
  const auto is_in_package = [&](const NumberedCore& core) {
    return !core.cpus.is_empty() && is_in(core.package, topology.packages);
  };
  const auto is_near = [&](const auto& device) {
    return device.numa == -1 || is_in(device.numa, topology.numa_nodes);
  };
  // A plan puts their numbers into a CpuSet, as those of CPUs.
  const auto is_numbered = [](const NumaNode& node) {
    return node.os_index >= 0 && node.os_index < kMaxCpuNumbers;
  };
  return !topology.cores.empty() &&
         std::all_of(topology.numa_nodes.begin(), topology.numa_nodes.end(), is_numbered) &&
         std::all_of(topology.cores.begin(), topology.cores.end(), is_placed) &&
         std::all_of(topology.numbered_cores.begin(), topology.numbered_cores.end(), is_in_package) &&
         std::all_of(topology.gpus.begin(), topology.gpus.end(), is_near) &&
         std::all_of(topology.nics.begin(), topology.nics.end(), is_near);
}

Result<ReservedCores> parse_reserved(std::string_view text) {
  if (text == "first-core-per-l3") return ReservedCores{true, {}};
  auto cpus = CpuSet::parse_list(text);
  if (!cpus || cpus->is_empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "'" + std::string(text) + "' is neither first-core-per-l3 nor CPUs such as 0,8,16-17");
  }
  return ReservedCores{false, *std::move(cpus)};
}

CpuSet reserved_cpus(const ReservedCores& reserved, const std::vector<CpuDomain>& l3s) {
  CpuSet cpus = reserved.cpus;
  if (!reserved.first_core_per_l3) return cpus;
  for (const CpuDomain& l3 : l3s) {
    if (!l3.complete.is_empty()) cpus.add(l3.complete.first());
  }
  return cpus;
}

std::vector<NumberedCore> numbered_cores(const Topology& topology) {
  if (!topology.numbered_cores.empty()) return topology.numbered_cores;
  std::vector<NumberedCore> cores;
  for (const Core& core : topology.cores) cores.push_back({core.cpus, core.package});
  std::stable_sort(cores.begin(), cores.end(),
                   [](const NumberedCore& a, const NumberedCore& b) { return a.package < b.package; });
  return cores;
}

std::string mixed_vendors(const Topology& topology) {
  std::vector<std::string> vendors;
  for (const Gpu& gpu : topology.gpus) {
    if (std::find(vendors.begin(), vendors.end(), name_of(gpu.vendor)) == vendors.end())
      vendors.emplace_back(name_of(gpu.vendor));
  }
  return vendors.size() < 2 ? "" : "the node has GPUs of " + join(vendors, " and ");
}

void sort_by_first_cpu(std::vector<Core>& cores) {
  // The first CPU of each core is looked up once: in a set of many thousand CPUs that takes a while.
  std::vector<std::pair<int, Core>> keyed;
  keyed.reserve(cores.size());
  for (Core& core : cores) {
    const int first = core.cpus.first();
    keyed.emplace_back(first, std::move(core));
  }
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(keyed.begin(), keyed.end(), cores.begin(), [](auto& one) { return std::move(one.second); });
}

}  // namespace ddl::affinity
