#include "launcher/head/rank_map.h"

namespace ddl::launcher {

RankMap::RankMap(const Placement& placement, std::size_t fleet_size) : nodes_(fleet_size) {
  for (const RankPlacement& rank : placement.ranks) rank_nodes_.push_back(rank.node);
  for (const PlacedNode& node : placement.nodes) {
    nodes_.at(node.allocated) = places_.size();
    places_.push_back(node.allocated);
  }
}

std::size_t RankMap::place_of_rank(int rank) const {
  return places_.at(static_cast<std::size_t>(rank_nodes_.at(static_cast<std::size_t>(rank))));
}

std::optional<std::size_t> RankMap::node_at(std::size_t place) const {
  return place < nodes_.size() ? nodes_[place] : std::nullopt;
}

bool RankMap::is_rank_at(std::size_t place, int rank) const {
  return rank >= 0 && static_cast<std::size_t>(rank) < rank_nodes_.size() && place_of_rank(rank) == place;
}

}  // namespace ddl::launcher
