// Assigns GPUs to ranks, and to each rank cores and network adapters near its GPUs. First all cores of the node are
// split among all its GPUs; then each rank takes the cores of its GPUs, or its part of them.
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "affinity/plan/binding_plan.h"
#include "affinity/plan/rank_assignment.h"
#include "affinity/topology.h"
#include "base/text.h"

namespace ddl::affinity {

// The cores of each GPU: those near to it, split among the GPUs that are near to the same ones.

struct GpuCores {
  std::vector<int> cores;  ///< positions in Topology::cores, by first CPU; not empty
  std::string why;         ///< "near CPUs 0-7, part 1 of 2"
};

struct GpuSplit {
  std::vector<GpuCores> gpus;  ///< as Topology::gpus
  std::vector<std::string> warnings;
};

/// No core belongs to two GPUs, unless there are fewer cores than GPUs that need cores of the same place. All GPUs of
/// the node have cores, whether or not a rank uses them, so a GPU's cores are the same for every number of ranks.
/// usable.cores is not empty.
GpuSplit split_among_gpus(const Topology& topology, const UsableCores& usable);

namespace {

using Cores = std::vector<int>;  // positions in Topology::cores, ascending

Cores cores_within(const Topology& topology, const Cores& cores, const CpuSet& cpus) {
  Cores within;
  for (const int core : cores) {
    if (topology.cores[core].cpus.intersects(cpus)) within.push_back(core);
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

/// The CPUs near the GPU; if none of these may be used, those of its package; else all usable ones.
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
    warnings.push_back(name_of(gpu) + ": it is unknown which CPUs are near it, so its ranks may run on any");
    return {usable.cores, "near unknown CPUs", false};
  }
  warnings.push_back(
      fmt::format("{}: no CPU of its package may be used, so its ranks run on others", name_of(gpu)));
  return {usable.cores, "near CPUs that may not be used (" + near.list() + ")", false};
}

/// A group of cores, and the GPUs that share them evenly.
struct CoreGroup {
  Cores cores;
  std::vector<int> gpus;
};

class CoreSplit {
 public:
  explicit CoreSplit(std::vector<Region> regions) : regions_(std::move(regions)) {
    // GPUs that are near to few cores take theirs first: the others have more cores to choose from.
    std::map<std::pair<bool, std::pair<std::size_t, Cores>>, std::vector<int>> groups;
    for (int gpu = 0; gpu < std::ssize(regions_); ++gpu) {
      const Region& region = regions_[gpu];
      groups[{!region.is_near, {region.cores.size(), region.cores}}].push_back(gpu);
    }
    for (const auto& [key, gpus] : groups) assign(key.second.second, gpus);
    for (CoreGroup& one : all_) std::sort(one.gpus.begin(), one.gpus.end());
  }
  const std::vector<CoreGroup>& all() const { return all_; }

 private:
  void assign(const Cores& region, const std::vector<int>& gpus) {
    const Cores free = without(region, taken_);
    if (free.size() >= gpus.size()) return add_group(free, gpus);
    for (const int gpu : gpus) {
      CoreGroup* const best = best_group_in(region);
      if (best == nullptr) return add_group(region, gpus);
      best->gpus.push_back(gpu);
    }
  }

  void add_group(const Cores& cores, const std::vector<int>& gpus) {
    all_.push_back({cores, gpus});
    Cores both;
    std::set_union(taken_.begin(), taken_.end(), cores.begin(), cores.end(), std::back_inserter(both));
    taken_ = std::move(both);
  }

  /// The group of the region in which one more GPU gets most cores; nullptr if the region has no group yet.
  CoreGroup* best_group_in(const Cores& region) {
    CoreGroup* best = nullptr;
    for (CoreGroup& one : all_) {
      if (!have_one_in_common(one.cores, region)) continue;
      if (best == nullptr ||
          one.cores.size() * (best->gpus.size() + 1) > best->cores.size() * (one.gpus.size() + 1))
        best = &one;
    }
    return best;
  }

  std::vector<Region> regions_;
  std::vector<CoreGroup> all_;
  Cores taken_;
};

}  // namespace

GpuSplit split_among_gpus(const Topology& topology, const UsableCores& usable) {
  GpuSplit split;
  std::vector<Region> regions;
  for (const Gpu& gpu : topology.gpus) regions.push_back(region_of(topology, usable, gpu, split.warnings));
  split.gpus.resize(regions.size());
  const CoreSplit core_split(regions);
  for (const CoreGroup& one : core_split.all()) {
    const int parts = one.gpus.size(), count = one.cores.size();
    const std::vector<Cores> shares = parts_of(topology, one.cores, parts);
    for (int i = 0; i < parts; ++i) {
      const int gpu = one.gpus[i];
      GpuCores& own = split.gpus[gpu];
      own.cores = count < parts ? Cores{one.cores[i % count]} : shares[i];
      if (usable.reserves_first_of_share && own.cores.size() > 1) own.cores.erase(own.cores.begin());
      own.why = regions[gpu].name;
      if (parts > 1) own.why += fmt::format(", part {} of {}", i + 1, parts);
    }
  }
  if (usable.reserves_first_of_share) {
    split.warnings.emplace_back(
        "it is unknown which cores share an L3, so the first core of each GPU's share is left to "
        "the system");
  }
  return split;
}

namespace {

/// Which GPUs a rank has: positions in the order of the ranks, and its number among the ranks that share the GPU.
struct Claim {
  Share gpus;
  int turn = 0;
  int turns = 1;
};

Result<std::vector<Claim>> claims_of(const BindingPolicy& policy, int gpus, int ranks) {
  if (gpus == 0) return fail(ErrorCode::kInvalidArgument, "--bind-to gpu: this node has no GPU");
  std::vector<Claim> claims;
  if (policy.gpus_per_rank > 1) {
    if (policy.gpus_per_rank * ranks > gpus) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} with {} each need {}, the node has {}", counted(ranks, "rank"),
                              counted(policy.gpus_per_rank, "GPU"), policy.gpus_per_rank * ranks, gpus));
    }
    for (int rank = 0; rank < ranks; ++rank)
      claims.push_back({{rank * policy.gpus_per_rank, policy.gpus_per_rank}, 0, 1});
    return claims;
  }
  const int max_per_gpu = policy.ranks_per_gpu > 0    ? policy.ranks_per_gpu
                          : policy.gpus_per_rank == 1 ? 1
                                                      : (ranks + gpus - 1) / gpus;
  if (max_per_gpu * gpus < ranks) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} for {} with at most {} each; --ranks-per-gpu lets more share one",
                            counted(ranks, "rank"), counted(gpus, "GPU"), counted(max_per_gpu, "rank")));
  }
  // With --ranks-per-gpu this number on each GPU; otherwise evenly, so that the numbers differ by one at most.
  const int used = policy.ranks_per_gpu > 0 ? (ranks + max_per_gpu - 1) / max_per_gpu : std::min(ranks, gpus);
  for (int gpu = 0; gpu < used; ++gpu) {
    const int here = policy.ranks_per_gpu > 0 ? std::min(max_per_gpu, ranks - gpu * max_per_gpu)
                                              : share_of(ranks, gpu, used).count;
    for (int turn = 0; turn < here; ++turn) claims.push_back({{gpu, 1}, turn, here});
  }
  return claims;
}

/// Positions in Topology::gpus, in the order in which ranks take them.
std::vector<int> order_of(const BindingPolicy& policy, const std::vector<GpuCores>& gpus) {
  std::vector<int> order(gpus.size());
  std::iota(order.begin(), order.end(), 0);
  if (policy.rank_order == RankOrder::kCpu) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return gpus[a].cores.front() < gpus[b].cores.front(); });
  }
  return order;
}

std::optional<int> package_of(const Topology& topology, const CpuSet& cpus) {
  for (int package = 0; package < std::ssize(topology.packages); ++package) {
    if (topology.packages[package].complete.intersects(cpus)) return package;
  }
  return std::nullopt;
}

/// How far a NIC is from a GPU; the nearest is 0.
int distance(const Topology& topology, const Gpu& gpu, const Nic& nic) {
  if (!gpu.pci_switch.empty() && gpu.pci_switch == nic.pci_switch) return 0;
  if (gpu.numa >= 0 && gpu.numa == nic.numa) return 1;
  const auto package = package_of(topology, gpu.complete_local_cpus);
  return package && package == package_of(topology, nic.local_cpus) ? 2 : 3;
}

}  // namespace

std::vector<std::string> nics_of_gpus(const Topology& topology) {
  std::vector<std::string> chosen;
  std::map<std::vector<std::size_t>, std::size_t> turns;
  double fastest = 0;
  for (const Nic& nic : topology.nics) fastest = std::max(fastest, nic.bus_speed);
  const bool knows_speeds = std::all_of(topology.nics.begin(), topology.nics.end(),
                                        [](const Nic& nic) { return nic.bus_speed > 0; });
  const bool has_fabric =
      std::any_of(topology.nics.begin(), topology.nics.end(), [](const Nic& nic) { return nic.is_fabric; });
  // A much slower adapter is for logging in, and not for messages. Where speeds are unknown, so is Ethernet beside
  // InfiniBand or another fabric.
  const auto is_for_messages = [&](const Nic& nic) {
    if (!knows_speeds && has_fabric && !nic.is_fabric) return false;
    const bool is_unknown = nic.bus_speed == 0 && nic.is_fabric;
    return is_unknown || nic.bus_speed >= fastest / 2;
  };
  for (const Gpu& gpu : topology.gpus) {
    std::vector<std::size_t> nearest;
    int best = 3;
    for (std::size_t nic = 0; nic < topology.nics.size(); ++nic) {
      if (!is_for_messages(topology.nics[nic])) continue;
      const int far = distance(topology, gpu, topology.nics[nic]);
      if (far < best) nearest.clear();
      best = std::min(best, far);
      if (far == best && far < 3) nearest.push_back(nic);
    }
    chosen.push_back(nearest.empty() ? "" : topology.nics[nearest[turns[nearest]++ % nearest.size()]].name);
  }
  return chosen;
}

Result<Assignment> assign_by_gpu(const Topology& topology, const BindingPolicy& policy,
                                 const UsableCores& usable, int local_ranks) {
  DDL_ASSIGN(claims, claims_of(policy, topology.gpus.size(), local_ranks));
  GpuSplit split = split_among_gpus(topology, usable);
  const std::vector<int> order = order_of(policy, split.gpus);
  const std::vector<std::string> nics = nics_of_gpus(topology);
  Assignment assignment;
  assignment.warnings = std::move(split.warnings);
  if (const std::string mixed = mixed_vendors(topology); !mixed.empty())
    assignment.warnings.push_back(
        mixed +
        ", and ranks have either; with CUDA_VISIBLE_DEVICES, "
        "ROCR_VISIBLE_DEVICES or ZE_AFFINITY_MASK set they have those of one vendor");
  for (std::size_t rank = 0; rank < claims.size(); ++rank) {
    const Claim& claim = claims[rank];
    AssignedRank own;
    for (const int index : take(order, claim.gpus)) {
      const Gpu& gpu = topology.gpus[index];
      own.gpus.push_back({gpu.index, gpu.vendor, gpu.bus_id, gpu.uuid, gpu.visible_as});
      const std::vector<int>& cores = split.gpus[index].cores;
      own.cores.insert(own.cores.end(), cores.begin(), cores.end());
      own.why += fmt::format("{}GPU {}{} is {}", own.why.empty() ? "" : "; ", gpu.index,
                             gpu.bus_id.empty() ? "" : " (" + gpu.bus_id + ")", split.gpus[index].why);
      const bool is_new = std::find(own.nics.begin(), own.nics.end(), nics[index]) == own.nics.end();
      if (is_new && !nics[index].empty()) own.nics.push_back(nics[index]);
    }
    std::sort(own.cores.begin(), own.cores.end());
    own.cores.erase(std::unique(own.cores.begin(), own.cores.end()), own.cores.end());
    const int count = own.cores.size();
    if (claim.turns > 1) {
      own.cores = count < claim.turns ? std::vector<int>{own.cores[claim.turn % count]}
                                      : parts_of(topology, own.cores, claim.turns)[claim.turn];
      own.why += fmt::format(", rank {} of {} on it", claim.turn + 1, claim.turns);
    }
    assignment.ranks.push_back(std::move(own));
  }
  DDL_TRY(keep_cores(assignment, policy, topology));
  DDL_TRY(allow_sharing(assignment, policy, topology));
  return assignment;
}

}  // namespace ddl::affinity
