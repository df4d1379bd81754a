#include "launcher/plan/placement.h"

#include "base/text.h"

namespace ddl::launcher {
namespace {

// How many ranks each node of the allocation gets.
std::vector<int> ranks_per_node(int num_proc, const std::vector<int>& slots) {
  std::vector<int> taken(slots.size(), 0);
  int left = num_proc;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    taken[i] = std::min(slots[i], left);
    left -= taken[i];
  }
  for (std::size_t i = 0; left > 0; i = (i + 1) % slots.size(), --left) ++taken[i];
  return taken;
}

}  // namespace

Result<Placement> place(const JobSpec& spec, const Allocation& allocation, const std::vector<int>& slots) {
  int total = 0;
  for (const int count : slots) total += count;
  if (spec.num_proc > total && !spec.oversubscribe) {
    return fail(ErrorCode::kInvalidArgument,
                counted(spec.num_proc, "rank") + " asked for, and " + allocation.origin + " has " +
                    counted(total, "slot") + " (one for each CPU that this process may use); ask for -np " +
                    std::to_string(total) + ", or add --oversubscribe to run several ranks on a CPU");
  }

  Placement placement;
  const auto per_node = ranks_per_node(spec.num_proc, slots);
  int rank = 0;
  for (std::size_t i = 0; i < per_node.size(); ++i) {
    if (per_node[i] == 0) continue;
    const int node = static_cast<int>(placement.nodes.size());
    PlacedNode placed{allocation.nodes[i].name, {}};
    for (int local = 0; local < per_node[i]; ++local, ++rank) {
      placed.ranks.push_back(rank);
      placement.ranks.push_back({rank, node, local, per_node[i], 0, 0});
    }
    placement.nodes.push_back(std::move(placed));
  }
  // Cross: among the nodes that have this local rank.
  for (RankPlacement& one : placement.ranks) {
    for (const RankPlacement& other : placement.ranks) {
      if (other.local_rank != one.local_rank) continue;
      ++one.cross_size;
      if (other.node < one.node) ++one.cross_rank;
    }
  }
  return placement;
}

}  // namespace ddl::launcher
