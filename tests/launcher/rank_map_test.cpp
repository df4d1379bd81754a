#include "launcher/plan/placement.h"

#include "support/catch.h"

using namespace ddl::launcher;

TEST_CASE("ranks, nodes of the plan and fleet_indices in the fleet are found from each other") {
  // Four hosts, of which the second and the third have no rank.
  Placement placement;
  placement.nodes = {{"a", {0, 2}, 0}, {"d", {1}, 3}};
  placement.ranks = {{0, 0, 0, 2, 0, 2}, {1, 1, 0, 1, 1, 2}, {2, 0, 1, 2, 0, 1}};
  const RankMap map(placement, 4);

  CHECK(map.rank_nodes() == std::vector<int>{0, 1, 0});
  CHECK(map.fleet_indices() == std::vector<std::size_t>{0, 3});
  CHECK(map.fleet_index_of_node(1) == 3);
  CHECK(map.fleet_index_of_rank(1) == 3);
  CHECK(map.fleet_index_of_rank(2) == 0);
  CHECK(map.node_at(3) == 1);
  CHECK(map.node_at(1) == std::nullopt);
  CHECK(map.node_at(4) == std::nullopt);
}

TEST_CASE("numbers that another process sends are looked up without trust") {
  Placement placement;
  placement.nodes = {{"a", {0}, 0}, {"b", {1}, 1}};
  placement.ranks = {{0, 0, 0, 1, 0, 2}, {1, 1, 0, 1, 1, 2}};
  const RankMap map(placement, 2);
  CHECK(map.is_rank_at(1, 1));
  CHECK_FALSE(map.is_rank_at(0, 1));
  CHECK_FALSE(map.is_rank_at(0, -1));
  CHECK_FALSE(map.is_rank_at(0, 2));
  CHECK_FALSE(RankMap().is_rank_at(0, 0));
}
