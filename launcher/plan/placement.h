// Which rank runs on which node.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/job/rank_placement.h"
#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

struct PlacedNode {
  std::string name;
  std::vector<int> ranks;  ///< ascending
  int allocated = 0;       ///< index into Allocation::nodes
};

struct Placement {
  std::vector<PlacedNode> nodes;     ///< only nodes that got a rank, in the allocation's order
  std::vector<RankPlacement> ranks;  ///< by rank; their node is an index of nodes
};

/// Distributes the ranks over the nodes, in the order of the allocation: all slots of a node before those of the
/// next one (MapBy::kSlot), or one rank to each node in turn (kNode). Ranks beyond the slots go to each node with
/// spare slots in turn; with --oversubscribe, ranks beyond these go to each node in turn. No node gets more than
/// its max_slots or than --ranks-per-node. Then ranks are numbered by JobSpec::rank_by. JobSpec::placed_ranks have their
/// places already, whatever the slots. Ranks that take no slots (JobSpec::roles) go to the nodes of the others in turn.
/// Pure; linear in ranks and nodes.
/// slots[i]: of node i of the allocation: the number given by the user or the scheduler, or the one that its agent found.
/// mapped_rank_limits[i]: how many ranks its objects take (mapped_rank_limits()); empty: no limit.
/// Error (kInvalidArgument): more ranks than fit; one sentence with the numbers and what to do.
Result<Placement> place(const JobSpec& spec, const Allocation& allocation, const std::vector<int>& slots,
                        const std::vector<int>& mapped_rank_limits = {});

/// How many ranks each node may get by --map-by ppr:N:numa and the like; empty if that was not asked for. Pure.
/// facts[i]: of node i of the allocation. Error: names the node of which it is unknown, with the reason.
Result<std::vector<int>> mapped_rank_limits(const JobSpec& spec, const Allocation& allocation,
                                            const std::vector<NodeFacts>& facts);

}  // namespace ddl::launcher
