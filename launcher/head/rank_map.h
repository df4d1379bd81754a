// Where the ranks of a running job are, in the three numberings that its head meets: ranks, nodes of the plan (those that
// have ranks), and places in the allocation and the fleet (all nodes).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "launcher/plan/placement.h"

namespace ddl::launcher {

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
