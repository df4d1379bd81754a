#include "affinity/plan/gpu_cores.h"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "affinity/plan/share.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

using Cores = std::vector<int>;  // positions in Topology::cores, ascending

Cores cores_within(const Topology& topology, const Cores& cores, const CpuSet& cpus) {
  Cores within;
  for (const int core : cores) {
    if (topology.cores[static_cast<std::size_t>(core)].cpus.intersects(cpus)) within.push_back(core);
  }
  return within;
}

Cores without(const Cores& cores, const Cores& taken) {
  Cores rest;
  std::set_difference(cores.begin(), cores.end(), taken.begin(), taken.end(), std::back_inserter(rest));
  return rest;
}

bool have_one_in_common(const Cores& a, const Cores& b) { return without(a, b).size() < a.size(); }

std::string name_of(const Gpu& gpu) {
  return fmt::format("GPU {}{}", gpu.index, gpu.bus_id.empty() ? "" : " (" + gpu.bus_id + ")");
}

/// Where a GPU's ranks may run.
struct Region {
  Cores cores;
  std::string name;  ///< "near CPUs 0-7"
  bool is_near = true;
};

/// Its own CPUs; its package's if none of these may be used; or any.
Region region_of(const Topology& topology, const UsableCores& usable, const Gpu& gpu,
                 std::vector<std::string>& warnings) {
  const CpuSet& near = gpu.complete_local_cpus;
  Cores cores = cores_within(topology, usable.cores, gpu.local_cpus);
  if (!cores.empty()) return {cores, "near CPUs " + near.list()};
  for (const CpuDomain& package : topology.packages) {
    if (package.complete.intersects(near)) cores = cores_within(topology, usable.cores, package.complete);
    if (cores.empty()) continue;
    warnings.push_back(
        fmt::format("{}: no CPU near it ({}) may be used, so its ranks run elsewhere in package {}",
                    name_of(gpu), near.list(), package.os_index));
    return {cores, "in the package of CPUs that may not be used (" + near.list() + ")", false};
  }
  if (near.is_empty()) {
    warnings.push_back(name_of(gpu) + ": nothing tells which CPUs are near it, so its ranks may run on any");
    return {usable.cores, "near CPUs that nothing tells", false};
  }
  warnings.push_back(
      fmt::format("{}: no CPU of its package may be used, so its ranks run on others", name_of(gpu)));
  return {usable.cores, "near CPUs that may not be used (" + near.list() + ")", false};
}

/// Cores, and the GPUs that share them evenly.
struct Neighbourhood {
  Cores cores;
  std::vector<int> gpus;
};

class Housing {
 public:
  explicit Housing(std::vector<Region> regions) : regions_(std::move(regions)) {
    // Who is nearest to few comes before who is near to many: the others have somewhere else to go.
    std::map<std::pair<bool, std::pair<std::size_t, Cores>>, std::vector<int>> groups;
    for (std::size_t gpu = 0; gpu < regions_.size(); ++gpu) {
      const Region& region = regions_[gpu];
      groups[{!region.is_near, {region.cores.size(), region.cores}}].push_back(static_cast<int>(gpu));
    }
    for (const auto& [key, gpus] : groups) house(key.second.second, gpus);
    for (Neighbourhood& one : all_) std::sort(one.gpus.begin(), one.gpus.end());
  }
  const std::vector<Neighbourhood>& all() const { return all_; }

 private:
  void house(const Cores& region, const std::vector<int>& gpus) {
    const Cores free = without(region, taken_);
    if (free.size() >= gpus.size()) return settle(free, gpus);
    for (const int gpu : gpus) {
      Neighbourhood* const roomiest = roomiest_in(region);
      if (roomiest == nullptr) return settle(region, gpus);
      roomiest->gpus.push_back(gpu);
    }
  }

  void settle(const Cores& cores, const std::vector<int>& gpus) {
    all_.push_back({cores, gpus});
    Cores both;
    std::set_union(taken_.begin(), taken_.end(), cores.begin(), cores.end(), std::back_inserter(both));
    taken_ = std::move(both);
  }

  /// Where one more GPU has most cores; none if nobody lives there yet.
  Neighbourhood* roomiest_in(const Cores& region) {
    Neighbourhood* best = nullptr;
    for (Neighbourhood& one : all_) {
      if (!have_one_in_common(one.cores, region)) continue;
      if (best == nullptr ||
          one.cores.size() * (best->gpus.size() + 1) > best->cores.size() * (one.gpus.size() + 1))
        best = &one;
    }
    return best;
  }

  std::vector<Region> regions_;
  std::vector<Neighbourhood> all_;
  Cores taken_;
};

}  // namespace

GpuSplit split_among_gpus(const Topology& topology, const UsableCores& usable) {
  GpuSplit split;
  std::vector<Region> regions;
  for (const Gpu& gpu : topology.gpus) regions.push_back(region_of(topology, usable, gpu, split.warnings));
  split.gpus.resize(regions.size());
  const Housing housing(regions);
  for (const Neighbourhood& one : housing.all()) {
    const int parts = static_cast<int>(one.gpus.size()), count = static_cast<int>(one.cores.size());
    for (int i = 0; i < parts; ++i) {
      const auto gpu = static_cast<std::size_t>(one.gpus[static_cast<std::size_t>(i)]);
      GpuCores& own = split.gpus[gpu];
      own.cores = count < parts ? Cores{one.cores[static_cast<std::size_t>(i % count)]}
                                : take(one.cores, share_of(count, i, parts));
      if (usable.reserves_first_of_share && own.cores.size() > 1) own.cores.erase(own.cores.begin());
      own.why = regions[gpu].name;
      if (parts > 1) own.why += fmt::format(", part {} of {}", i + 1, parts);
    }
  }
  if (usable.reserves_first_of_share) {
    split.warnings.emplace_back(
        "nothing tells which cores share an L3, so the first core of each GPU's share is left to "
        "the system");
  }
  return split;
}

}  // namespace ddl::affinity
