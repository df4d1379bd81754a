#include "launcher/plan/placement.h"

#include <set>

#include "launcher/facts.h"
#include "support/catch.h"

using namespace ddl::launcher;
using ddl::launcher::test::allocation_of;
using ddl::launcher::test::job_of;

namespace {

ddl::Result<Placement> place_on(const std::vector<int>& slots, int num_proc, bool oversubscribe = false) {
  JobSpec spec = job_of(num_proc);
  spec.oversubscribe = oversubscribe;
  return place(spec, allocation_of(slots.size()), slots);
}

/// "node0: 0 1 | node2: 2"
std::string text_of(const Placement& placement) {
  std::string text;
  for (const PlacedNode& node : placement.nodes) {
    text += (text.empty() ? "" : " | ") + node.name + ":";
    for (const int rank : node.ranks) text += " " + std::to_string(rank);
  }
  return text;
}

}  // namespace

TEST_CASE("ranks fill the nodes by slot, in their order") {
  CHECK(text_of(*place_on({4}, 2)) == "node0: 0 1");
  CHECK(text_of(*place_on({2, 2}, 4)) == "node0: 0 1 | node1: 2 3");
  CHECK(text_of(*place_on({2, 2, 2}, 3)) == "node0: 0 1 | node1: 2");
}

TEST_CASE("a node that gets no rank is not part of the placement") {
  const auto placement = place_on({1, 0, 2}, 3);
  REQUIRE(placement);
  CHECK(text_of(*placement) == "node0: 0 | node2: 1 2");
  CHECK(placement->ranks[2].node == 1);  // an index among the nodes that are left
}

TEST_CASE("with oversubscribe, ranks beyond the slots are dealt round the nodes") {
  CHECK(text_of(*place_on({1, 2}, 5, true)) == "node0: 0 1 | node1: 2 3 4");
  CHECK(text_of(*place_on({1, 2}, 6, true)) == "node0: 0 1 2 | node1: 3 4 5");
  CHECK(text_of(*place_on({0, 0}, 3, true)) == "node0: 0 1 | node1: 2");
  CHECK(text_of(*place_on({2, 2}, 4, true)) == text_of(*place_on({2, 2}, 4)));
}

TEST_CASE("more ranks than slots are refused, with both numbers and the remedy") {
  const auto refused = place_on({1, 2}, 4);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == ddl::ErrorCode::kInvalidArgument);
  CHECK(refused.error().message() ==
        "4 ranks asked for, and the test has 3 slots (one for each CPU that this process may use); "
        "ask for -np 3, or add --oversubscribe to run several ranks on a CPU");
}

TEST_CASE("cross rank and size count the nodes that have the same local rank") {
  const auto placement = place_on({1, 3, 2}, 6);
  REQUIRE(placement);
  REQUIRE(text_of(*placement) == "node0: 0 | node1: 1 2 3 | node2: 4 5");
  struct Expected {
    int local_rank, local_size, cross_rank, cross_size;
  };
  const std::vector<Expected> expected = {{0, 1, 0, 3}, {0, 3, 1, 3}, {1, 3, 0, 2},
                                          {2, 3, 0, 1}, {0, 2, 2, 3}, {1, 2, 1, 2}};
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    INFO("rank " << rank);
    const RankPlacement& placed = placement->ranks[rank];
    CHECK(placed.local_rank == expected[rank].local_rank);
    CHECK(placed.local_size == expected[rank].local_size);
    CHECK(placed.cross_rank == expected[rank].cross_rank);
    CHECK(placed.cross_size == expected[rank].cross_size);
  }
}

TEST_CASE("every placement holds each rank once, densely numbered on its node and across nodes") {
  const std::vector<std::vector<int>> shapes = {{1},          {8},       {1, 1},       {4, 1},
                                                {1, 4},       {2, 0, 3}, {0, 0, 1},    {3, 2, 1},
                                                {1, 1, 1, 1}, {5, 5, 5}, {16, 1, 7, 2}};
  for (const auto& slots : shapes) {
    int total = 0;
    for (const int count : slots) total += count;
    for (int num_proc = 1; num_proc <= total + 5; ++num_proc) {
      CAPTURE(slots, num_proc);
      const auto placement = place_on(slots, num_proc, true);
      REQUIRE(placement);
      REQUIRE(placement->ranks.size() == static_cast<std::size_t>(num_proc));
      int next = 0;
      for (std::size_t node = 0; node < placement->nodes.size(); ++node) {
        const auto& ranks = placement->nodes[node].ranks;
        REQUIRE_FALSE(ranks.empty());
        for (std::size_t local = 0; local < ranks.size(); ++local) {
          const RankPlacement& placed = placement->ranks[static_cast<std::size_t>(ranks[local])];
          REQUIRE(ranks[local] == next++);
          REQUIRE(placed.rank == ranks[local]);
          REQUIRE(placed.node == static_cast<int>(node));
          REQUIRE(placed.local_rank == static_cast<int>(local));
          REQUIRE(placed.local_size == static_cast<int>(ranks.size()));
        }
        // Nobody is crowded while another node has a free slot, and the surplus is spread evenly.
        const auto name = placement->nodes[node].name;
        const int slot_count = slots[static_cast<std::size_t>(std::stoi(name.substr(4)))];
        const int surplus = std::max(0, num_proc - total);
        const int most = surplus / static_cast<int>(slots.size()) + 1;
        REQUIRE(static_cast<int>(ranks.size()) <= slot_count + (surplus == 0 ? 0 : most));
      }
      REQUIRE(next == num_proc);
      // (local rank, cross rank) names a rank, and cross ranks are 0 .. cross size - 1.
      std::set<std::pair<int, int>> places;
      for (const RankPlacement& placed : placement->ranks) {
        REQUIRE(placed.cross_rank >= 0);
        REQUIRE(placed.cross_rank < placed.cross_size);
        REQUIRE(places.insert({placed.local_rank, placed.cross_rank}).second);
      }
    }
  }
}
