// Which rank runs on which node, and the numberings by which the head finds a rank: by rank, by node of the plan, and by
// place in the allocation.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

// Which rank runs on which node.

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

// Where the ranks of a running job are, in the three numberings that its head meets: ranks, nodes of the plan (those that
// have ranks), and places in the allocation and the fleet (all nodes).

/// Immutable once made.
class RankMap {
 public:
  RankMap() = default;
  /// fleet_size: how many nodes the allocation has.
  RankMap(const Placement& placement, std::size_t fleet_size);

  /// The plan's node of each rank.
  const std::vector<int>& rank_nodes() const { return rank_nodes_; }
  /// The fleet's place of a node of the plan, and of all of them in the plan's order.
  std::size_t place_of_node(std::size_t node) const { return places_.at(node); }
  const std::vector<std::size_t>& places() const { return places_; }
  std::size_t place_of_rank(int rank) const;
  /// The plan's node at a place of the fleet; nullopt for one that got no rank.
  std::optional<std::size_t> node_at(std::size_t place) const;
  /// Whether there is such a rank, and it runs there. Any number may be asked for.
  bool is_rank_at(std::size_t place, int rank) const;

 private:
  std::vector<int> rank_nodes_;
  std::vector<std::size_t> places_;
  std::vector<std::optional<std::size_t>> nodes_;  ///< by place
};

}  // namespace ddl::launcher
