#include "affinity/plan/gpu_ranks.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "affinity/plan/gpu_cores.h"
#include "affinity/plan/share.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

/// Which GPUs a rank has: positions in the order of the ranks, and which of those that share one it is.
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
  const int most = policy.ranks_per_gpu > 0    ? policy.ranks_per_gpu
                   : policy.gpus_per_rank == 1 ? 1
                                               : (ranks + gpus - 1) / gpus;
  if (most * gpus < ranks) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} for {} with at most {} each; --ranks-per-gpu lets more share one",
                            counted(ranks, "rank"), counted(gpus, "GPU"), counted(most, "rank")));
  }
  // As many as asked for on each if that was said; otherwise evenly, so that none has two more than another.
  const int used = policy.ranks_per_gpu > 0 ? (ranks + most - 1) / most : std::min(ranks, gpus);
  for (int gpu = 0; gpu < used; ++gpu) {
    const int here =
        policy.ranks_per_gpu > 0 ? std::min(most, ranks - gpu * most) : share_of(ranks, gpu, used).count;
    for (int turn = 0; turn < here; ++turn) claims.push_back({{gpu, 1}, turn, here});
  }
  return claims;
}

/// Positions in Topology::gpus, in the order in which ranks take them.
std::vector<int> order_of(const BindingPolicy& policy, const std::vector<GpuCores>& gpus) {
  std::vector<int> order(gpus.size());
  std::iota(order.begin(), order.end(), 0);
  if (policy.rank_order == RankOrder::kCpu) {
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return gpus[static_cast<std::size_t>(a)].cores.front() <
             gpus[static_cast<std::size_t>(b)].cores.front();
    });
  }
  return order;
}

int package_of(const Topology& topology, const CpuSet& cpus) {
  for (std::size_t package = 0; package < topology.packages.size(); ++package) {
    if (topology.packages[package].complete.intersects(cpus)) return static_cast<int>(package);
  }
  return -1;
}

/// How far a NIC is from a GPU; the nearest is 0.
int distance(const Topology& topology, const Gpu& gpu, const Nic& nic) {
  if (!gpu.pci_switch.empty() && gpu.pci_switch == nic.pci_switch) return 0;
  if (gpu.numa >= 0 && gpu.numa == nic.numa) return 1;
  const int package = package_of(topology, gpu.complete_local_cpus);
  return package >= 0 && package == package_of(topology, nic.local_cpus) ? 2 : 3;
}

}  // namespace

std::vector<std::string> nics_of_gpus(const Topology& topology) {
  std::vector<std::string> chosen;
  std::map<std::vector<std::size_t>, std::size_t> turns;
  double fastest = 0;
  for (const Nic& nic : topology.nics) fastest = std::max(fastest, nic.bus_speed);
  for (const Gpu& gpu : topology.gpus) {
    std::vector<std::size_t> nearest;
    int best = 3;
    for (std::size_t nic = 0; nic < topology.nics.size(); ++nic) {
      // Who cannot keep up is there for logging in.
      if (topology.nics[nic].bus_speed < fastest / 2) continue;
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
  auto claims = claims_of(policy, static_cast<int>(topology.gpus.size()), local_ranks);
  if (!claims) return fail(std::move(claims.error()));
  GpuSplit split = split_among_gpus(topology, usable);
  const std::vector<int> order = order_of(policy, split.gpus);
  const std::vector<std::string> nics = nics_of_gpus(topology);
  Assignment assignment;
  assignment.warnings = std::move(split.warnings);
  for (std::size_t rank = 0; rank < claims->size(); ++rank) {
    const Claim& claim = (*claims)[rank];
    AssignedRank own;
    for (const int position : take(order, claim.gpus)) {
      const auto index = static_cast<std::size_t>(position);
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
    const int count = static_cast<int>(own.cores.size());
    if (claim.turns > 1) {
      own.cores = count < claim.turns
                      ? std::vector<int>{own.cores[static_cast<std::size_t>(claim.turn % count)]}
                      : take(own.cores, share_of(count, claim.turn, claim.turns));
      own.why += fmt::format(", rank {} of {} on it", claim.turn + 1, claim.turns);
    }
    assignment.ranks.push_back(std::move(own));
  }
  DDL_TRY(keep_cores(assignment, policy, topology));
  DDL_TRY(allow_sharing(assignment, policy, topology));
  return assignment;
}

}  // namespace ddl::affinity
