#include "launcher/job/rank_placement.h"

#include <algorithm>

namespace ddl::launcher {

std::vector<RankPlacement> rank_placements(const std::vector<int>& nodes) {
  std::vector<std::vector<int>> node_ranks;
  for (int rank = 0; rank < std::ssize(nodes); ++rank) {
    node_ranks.resize(std::max<std::size_t>(node_ranks.size(), nodes[rank] + 1));
    node_ranks[nodes[rank]].push_back(rank);
  }
  std::vector<RankPlacement> placements(nodes.size());
  std::vector<int> nodes_with;  // by local rank
  for (const std::vector<int>& ranks : node_ranks) {
    nodes_with.resize(std::max(nodes_with.size(), ranks.size()), 0);
    for (int local = 0; local < std::ssize(ranks); ++local) {
      const int rank = ranks[local], size = static_cast<int>(std::ssize(nodes));
      const int local_size = static_cast<int>(std::ssize(ranks));
      placements[rank] = {rank, nodes[rank], local, local_size, nodes_with[local]++, 0, size};
    }
  }
  for (RankPlacement& one : placements) one.cross_size = nodes_with[one.local_rank];
  return placements;
}

}  // namespace ddl::launcher
