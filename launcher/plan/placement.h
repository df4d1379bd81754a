// Which rank runs on which node.
#pragma once

#include <cstddef>
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
  std::vector<int> ranks;     ///< ascending
  std::size_t allocated = 0;  ///< index into Allocation::nodes
};

struct Placement {
  std::vector<PlacedNode> nodes;     ///< only nodes that got a rank, in the allocation's order
  std::vector<RankPlacement> ranks;  ///< by rank
};

/// Deals the ranks over the nodes, in their order: all slots of a node before the next node's (MapBy::kSlot), or one
/// rank to each node in turn (kNode); ranks beyond the slots to each node with spare ones in turn. With --oversubscribe, ranks beyond those are dealt to each node in turn.
/// No node gets more than its max_slots or than --ranks-per-node. Pure; linear in ranks and nodes.
/// slots[i]: what node i of the allocation takes; what was given with it, or what its agent found.
/// Error (kInvalidArgument): more ranks than fit; one sentence with the numbers and what to do.
Result<Placement> place(const JobSpec& spec, const Allocation& allocation, const std::vector<int>& slots);

}  // namespace ddl::launcher
