// Which rank runs on which node.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

struct RankPlacement {
  int rank = 0;
  int node = 0;        ///< index into Placement::nodes
  int local_rank = 0;  ///< among the ranks of its node
  int local_size = 0;
  int cross_rank = 0;  ///< index of its node among the nodes that have this local rank
  int cross_size = 0;
};

struct PlacedNode {
  std::string name;
  std::vector<int> ranks;  ///< ascending
};

struct Placement {
  std::vector<PlacedNode> nodes;     ///< only nodes that got a rank
  std::vector<RankPlacement> ranks;  ///< by rank
};

/// Fills the nodes by slot, in their order. Pure. slots[i] is what node i of the allocation takes.
/// Error: more ranks than slots and no --oversubscribe; the sentence has both numbers. With it, ranks beyond the
/// slots are dealt round the nodes.
Result<Placement> place(const JobSpec& spec, const Allocation& allocation, const std::vector<int>& slots);

}  // namespace ddl::launcher
