// Where a rank is among the others of its job.
#pragma once

#include <vector>

namespace ddl::launcher {

struct RankPlacement {
  int rank = 0;
  int node = 0;
  int local_rank = 0;  ///< among the ranks of its node
  int local_size = 0;
  int cross_rank = 0;  ///< index of its node among the nodes that have this local rank
  int cross_size = 0;
  int size = 0;  ///< of the job
  bool operator==(const RankPlacement&) const = default;
};

/// Of ranks on these nodes, by rank. The nodes are numbered from 0. Pure.
std::vector<RankPlacement> rank_placements(const std::vector<int>& nodes);

}  // namespace ddl::launcher
