#include "launcher/plan/placement.h"

#include <algorithm>
#include <set>

#include "launcher/facts.h"
#include "support/catch.h"

using namespace ddl::launcher;
using ddl::launcher::test::allocation_of;
using ddl::launcher::test::job_of;

namespace {

ddl::Result<Placement> place_on(const std::vector<int>& slots, int num_ranks, bool oversubscribe = false) {
  JobSpec spec = job_of(num_ranks);
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

/// Mapped by node: each rank is on one node, ranks of a node are ascending, and no node has more than one rank more
/// than another unless the other is full.
void check_by_node(const std::vector<int>& slots, int num_ranks) {
  JobSpec spec = job_of(num_ranks);
  spec.map_by = MapBy::kNode;
  spec.oversubscribe = true;
  const auto placement = place(spec, allocation_of(slots.size()), slots);
  REQUIRE(placement);
  std::vector<int> counts(slots.size(), 0);
  std::set<int> seen;
  for (const PlacedNode& node : placement->nodes) {
    REQUIRE(std::is_sorted(node.ranks.begin(), node.ranks.end()));
    seen.insert(node.ranks.begin(), node.ranks.end());
    counts[node.allocated] = static_cast<int>(node.ranks.size());
    for (std::size_t local = 0; local < node.ranks.size(); ++local) {
      REQUIRE(placement->ranks[static_cast<std::size_t>(node.ranks[local])].local_rank ==
              static_cast<int>(local));
    }
  }
  REQUIRE(seen.size() == static_cast<std::size_t>(num_ranks));
  REQUIRE(*seen.rbegin() == num_ranks - 1);
  int total = 0;
  for (const int count : slots) total += count;
  for (std::size_t a = 0; a < counts.size() && num_ranks <= total; ++a) {
    for (std::size_t b = 0; b < counts.size(); ++b) {
      REQUIRE((counts[a] <= counts[b] + 1 || counts[b] == slots[b]));
    }
  }
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
  CHECK(placement->ranks[2].node == 1);  // an index among the nodes with ranks
}

TEST_CASE("with oversubscribe, ranks beyond the slots are distributed over the nodes in turn") {
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
        "4 ranks asked for, and the test has 3 slots (node0 1, node1 2; one for each CPU that a process may "
        "use "
        "there); ask for -np 3, or add --oversubscribe to run several ranks on a CPU");
  const Allocation here = local_allocation("head");
  CHECK(place(job_of(4), here, {3}).error().message() ==
        "4 ranks asked for, and this machine has 3 slots (one for each CPU that this process may use); "
        "ask for -np 3, or add --oversubscribe to run several ranks on a CPU");
}

TEST_CASE("mapped by node, each node in turn gets one rank while it has slots") {
  JobSpec spec = job_of(7);
  spec.map_by = MapBy::kNode;
  CHECK(text_of(*place(spec, allocation_of(3), {2, 4, 1})) == "node0: 0 3 | node1: 1 4 5 6 | node2: 2");
  spec.num_ranks = 2;
  CHECK(text_of(*place(spec, allocation_of(3), {2, 0, 1})) == "node0: 0 | node2: 1");
  spec.num_ranks = 8;
  CHECK_FALSE(place(spec, allocation_of(3), {2, 4, 1}));
  // Beyond the slots it continues with the first node.
  spec.oversubscribe = true;
  CHECK(text_of(*place(spec, allocation_of(3), {2, 2, 1})) == "node0: 0 3 5 | node1: 1 4 6 | node2: 2 7");
}

TEST_CASE("mapped by node, local and cross ranks follow the numbers of the ranks") {
  JobSpec spec = job_of(5);
  spec.map_by = MapBy::kNode;
  const auto placement = place(spec, allocation_of(2), {2, 4});
  REQUIRE(text_of(*placement) == "node0: 0 2 | node1: 1 3 4");
  struct Expected {
    int node, local_rank, local_size, cross_rank, cross_size;
  };
  const std::vector<Expected> expected = {
      {0, 0, 2, 0, 2}, {1, 0, 3, 1, 2}, {0, 1, 2, 0, 2}, {1, 1, 3, 1, 2}, {1, 2, 3, 0, 1}};
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    INFO("rank " << rank);
    const RankPlacement& placed = placement->ranks[rank];
    CHECK(placed.rank == static_cast<int>(rank));
    CHECK(placed.node == expected[rank].node);
    CHECK(placed.local_rank == expected[rank].local_rank);
    CHECK(placed.local_size == expected[rank].local_size);
    CHECK(placed.cross_rank == expected[rank].cross_rank);
    CHECK(placed.cross_size == expected[rank].cross_size);
  }
}

TEST_CASE("with ranks per node, every node gets this number and the last one the rest") {
  JobSpec spec = job_of(5);
  spec.ranks_per_node = 2;
  CHECK(text_of(*place(spec, allocation_of(3), {4, 4, 4})) == "node0: 0 1 | node1: 2 3 | node2: 4");
  spec.map_by = MapBy::kNode;
  CHECK(text_of(*place(spec, allocation_of(3), {4, 4, 4})) == "node0: 0 3 | node1: 1 4 | node2: 2");
  spec.map_by = MapBy::kSlot;
  CHECK(place(spec, allocation_of(3), {4, 1, 1}).error().message() ==
        "5 ranks asked for, and the test has 4 slots for --ranks-per-node 2 (node0 2, node1 1, node2 1; one "
        "for "
        "each CPU that a process may use there); ask for -np 4, or add --oversubscribe to run several ranks "
        "on a "
        "CPU");
  spec.oversubscribe = true;
  CHECK(text_of(*place(spec, allocation_of(3), {4, 1, 1})) == "node0: 0 1 | node1: 2 3 | node2: 4");
  spec.num_ranks = 7;
  CHECK(place(spec, allocation_of(3), {4, 4, 4}).error().message() ==
        "7 ranks asked for, and the test takes 6 at most (--ranks-per-node 2 on 3 hosts); ask for -np 6, or "
        "give "
        "more hosts");
}

TEST_CASE("max_slots are respected with oversubscribe, too, and if the agents found the slots") {
  Allocation allocation = allocation_of(3);
  allocation.origin = "hosts.txt";
  allocation.nodes[0].max_slots = 2;
  allocation.nodes[2].max_slots = 1;
  JobSpec spec = job_of(8);
  spec.oversubscribe = true;
  CHECK(text_of(*place(spec, allocation, {1, 1, 1})) == "node0: 0 1 | node1: 2 3 4 5 6 | node2: 7");
  spec.oversubscribe = false;
  spec.num_ranks = 6;
  CHECK(text_of(*place(spec, allocation, {8, 3, 8})) == "node0: 0 1 | node1: 2 3 4 | node2: 5");
  allocation.nodes[1].max_slots = 3;
  spec.num_ranks = 7;
  for (const bool oversubscribe : {false, true}) {
    spec.oversubscribe = oversubscribe;
    CHECK(
        place(spec, allocation, {8, 3, 8}).error().message() ==
        "7 ranks asked for, and hosts.txt takes 6 at most (the sum of its max_slots); ask for -np 6, or give "
        "more hosts");
  }
}

TEST_CASE("more ranks than given slots are refused with the slots of each host") {
  Allocation allocation = allocation_of(2);
  allocation.origin = "-H";
  allocation.nodes[0].slots = 2;
  allocation.nodes[1].slots = 1;
  const JobSpec spec = job_of(4);
  CHECK(
      place(spec, allocation, {2, 1}).error().message() ==
      "4 ranks asked for, and -H has 3 slots (node0 2, node1 1); ask for -np 3, or add --oversubscribe to go "
      "beyond them");
  // A hundred hosts are not listed.
  allocation = allocation_of(100);
  for (AllocatedNode& node : allocation.nodes) node.slots = 1;
  CHECK(
      place(job_of(101), allocation, std::vector<int>(100, 1)).error().message() ==
      "101 ranks asked for, and the test has 100 slots; ask for -np 100, or add --oversubscribe to go beyond "
      "them");
}

TEST_CASE("a placed node has its index in the allocation") {
  const auto placement = place_on({1, 0, 2}, 3);
  CHECK(placement->nodes[0].allocated == 0);
  CHECK(placement->nodes[1].allocated == 2);
}

TEST_CASE("a million ranks are placed in a moment") {
  // One rank for each node is the worst case of an algorithm that was once quadratic: 10^12 steps would exceed
  // every timeout.
  constexpr int kRanks = 1'000'000;
  constexpr std::size_t kNodes = 65536;
  for (const MapBy map_by : {MapBy::kSlot, MapBy::kNode}) {
    JobSpec spec = job_of(kRanks);
    spec.map_by = map_by;
    const auto placement = place(spec, allocation_of(kNodes), std::vector<int>(kNodes, 16));
    REQUIRE(placement);
    CHECK(placement->ranks.size() == kRanks);
    CHECK(placement->ranks.front().cross_size >= 62500);
  }
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
    for (int num_ranks = 1; num_ranks <= total + 5; ++num_ranks) {
      CAPTURE(slots, num_ranks);
      const auto placement = place_on(slots, num_ranks, true);
      REQUIRE(placement);
      check_by_node(slots, num_ranks);
      REQUIRE(placement->ranks.size() == static_cast<std::size_t>(num_ranks));
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
        // No node is oversubscribed while another has a free slot, and the surplus is spread evenly.
        const auto name = placement->nodes[node].name;
        const int slot_count = slots[static_cast<std::size_t>(std::stoi(name.substr(4)))];
        const int surplus = std::max(0, num_ranks - total);
        const int most = surplus / static_cast<int>(slots.size()) + 1;
        REQUIRE(static_cast<int>(ranks.size()) <= slot_count + (surplus == 0 ? 0 : most));
      }
      REQUIRE(next == num_ranks);
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

TEST_CASE("ranks that take no slots go to the nodes of the others in turn") {
  JobSpec spec = job_of(9);
  spec.roles = mxnet_roles(4, 4);
  const auto placement = place(spec, allocation_of(3), {3, 2, 1});
  REQUIRE(placement);
  CHECK(text_of(*placement) == "node0: 0 1 2 4 6 8 | node1: 3 5 7");
  CHECK(placement->ranks.at(4).local_rank == 3);

  CHECK_FALSE(place(spec, allocation_of(1), {3}));
}

namespace {

std::vector<NodeFacts> facts_with_numa_nodes(const std::vector<int>& numbers) {
  std::vector<NodeFacts> facts;
  for (const int number : numbers) {
    NodeFacts& one = facts.emplace_back();
    for (int core = 0; core < 4 * number; ++core)
      one.topology.cores.push_back({ddl::CpuSet::of({core}), 0, core / 4, -1});
    one.topology.packages.resize(1);
    one.topology.numa_nodes.resize(static_cast<std::size_t>(number));
  }
  return facts;
}

JobSpec mapped_to_numa(int num_ranks, int each) {
  JobSpec spec = job_of(num_ranks);
  spec.binding.mapping = {ddl::affinity::BindTo::kNuma, each};
  return spec;
}

ddl::Result<Placement> place_by_numa(const JobSpec& spec, const std::vector<int>& numa_nodes,
                                     const std::vector<int>& slots) {
  const Allocation allocation = allocation_of(slots.size());
  const auto limits = mapped_rank_limits(spec, allocation, facts_with_numa_nodes(numa_nodes));
  if (!limits) return ddl::fail(limits.error());
  return place(spec, allocation, slots, *limits);
}

}  // namespace

TEST_CASE("--map-by ppr:N:numa gives each node N ranks for each of its NUMA nodes") {
  CHECK(text_of(*place_by_numa(mapped_to_numa(5, 2), {1, 2}, {4, 8})) == "node0: 0 1 | node1: 2 3 4");
  CHECK(text_of(*place_by_numa(mapped_to_numa(1, 2), {1, 2}, {4, 8})) == "node0: 0");
  // Objects in turn: as many as there are slots.
  CHECK(text_of(*place_by_numa(mapped_to_numa(5, 0), {1, 2}, {4, 8})) == "node0: 0 1 2 3 | node1: 4");
  CHECK(mapped_rank_limits(job_of(2), allocation_of(1), {NodeFacts{}})->empty());
}

TEST_CASE("more ranks than the objects take are refused with both numbers, also with --oversubscribe") {
  JobSpec spec = mapped_to_numa(7, 2);
  spec.oversubscribe = true;
  CHECK(place_by_numa(spec, {1, 2}, {4, 8}).error().message() ==
        "7 ranks asked for, and the test takes 6 at most (--map-by ppr:2:numa: node0 2, node1 4); ask for "
        "-np 6, or "
        "give more hosts");
  // Slots are a limit as well.
  CHECK_THAT(place_by_numa(mapped_to_numa(6, 2), {1, 2}, {1, 8}).error().message(),
             Catch::Contains("has 5 slots for --map-by ppr:2:numa (node0 1, node1 4"));
}

TEST_CASE("a node whose objects are unknown is named") {
  NodeFacts facts;
  facts.topology_failure = "no /sys";
  CHECK(mapped_rank_limits(mapped_to_numa(2, 1), allocation_of(1), {facts}).error().message() ==
        "node0: --map-by ppr:1:numa: its topology is not known: no /sys");
}

TEST_CASE("--rank-by numbers the ranks anew, and each node keeps as many as it has") {
  JobSpec spec = job_of(6);
  spec.rank_by = RankBy::kNode;  // as mpirun -H a:4,b:4 -np 6 --map-by slot --rank-by node
  CHECK(text_of(*place(spec, allocation_of(2), {4, 4})) == "node0: 0 2 4 5 | node1: 1 3");
  spec.rank_by = RankBy::kSlot;
  spec.map_by = MapBy::kNode;
  CHECK(text_of(*place(spec, allocation_of(2), {4, 4})) == "node0: 0 1 2 | node1: 3 4 5");
  CHECK(text_of(*place(spec, allocation_of(2), {1, 6})) == "node0: 0 | node1: 1 2 3 4 5");
  JobSpec numa = mapped_to_numa(5, 1);
  numa.rank_by = RankBy::kNode;
  const auto placement = place_by_numa(numa, {3, 2}, {12, 8});
  CHECK(text_of(*placement) == "node0: 0 2 4 | node1: 1 3");
  CHECK(placement->ranks[4].local_rank == 2);
}
