// Which rank runs on which node, and how the head finds the node of a rank: by index in the plan and by index in
// the fleet.
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

/// Converts between the three numberings of a running job: ranks, nodes of the plan (only nodes with ranks), and
/// indices in the fleet and the allocation (all nodes). Immutable.
class RankMap {
 public:
  RankMap() = default;
  /// fleet_size: how many nodes the allocation has.
  RankMap(const Placement& placement, std::size_t fleet_size);

  /// The plan's node of each rank.
  const std::vector<int>& rank_nodes() const { return rank_nodes_; }
  /// The index in the fleet of a node of the plan, and of all of them in the plan's order.
  std::size_t fleet_index_of_node(std::size_t node) const { return fleet_indices_.at(node); }
  const std::vector<std::size_t>& fleet_indices() const { return fleet_indices_; }
  std::size_t fleet_index_of_rank(int rank) const;
  /// The plan's node at an index in the fleet; nullopt for a node without ranks.
  std::optional<std::size_t> node_at(std::size_t fleet_index) const;
  /// Whether this rank exists and runs on this node. rank may be any number.
  bool is_rank_at(std::size_t fleet_index, int rank) const;

 private:
  std::vector<int> rank_nodes_;
  std::vector<std::size_t> fleet_indices_;
  std::vector<std::optional<std::size_t>> nodes_;  ///< by index in the fleet
};

}  // namespace ddl::launcher
