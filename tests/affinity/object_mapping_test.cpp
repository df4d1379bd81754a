// Ranks mapped to objects of a node, compared with what mpirun of Open MPI 4.1.4 does on the same (synthetic) node:
// HWLOC_SYNTHETIC="pack:2 numa:2 l3:2 core:2 pu:2" mpirun --do-not-launch --display-devel-map --map-by ...
#include <algorithm>

#include "affinity/plan/binding_plan.h"
#include "affinity/source/topology_source.h"
#include "affinity/support/model.h"
#include "affinity/support/planned.h"
#include "base/text.h"
#include "support/catch.h"

using ddl::CpuSet;
using namespace ddl::affinity;
using namespace ddl::affinity::test;

namespace {

/// CPUs 2c and 2c + 1 are core c, as in hwloc's synthetic topologies.
Topology node_of_16_cores() {
  Topology node = Model{2, 2, 2, 2, 1}.topology();
  const auto widen = [](CpuSet& cpus) {
    CpuSet both;
    for (const int core : cpus.cpus()) both |= CpuSet::range(2 * core, 2 * core + 1);
    cpus = both;
  };
  for (CpuSet* cpus : {&node.allowed, &node.complete}) widen(*cpus);
  for (Core& core : node.cores) widen(core.cpus);
  for (auto* domains : {&node.packages, &node.l3s}) {
    for (CpuDomain& one : *domains) {
      widen(one.cpus);
      widen(one.complete);
    }
  }
  for (NumaNode& one : node.numa_nodes) {
    widen(one.cpus);
    widen(one.complete);
  }
  return node;
}

BindingPolicy mapped(BindTo object, int ranks_per_object = 0) {
  BindingPolicy policy;
  policy.mapping = {object, ranks_per_object};
  policy.smt = true;  // mpirun gives all hardware threads
  return policy;
}

std::string cpus_of_ranks(const BindingPlan& plan) {
  std::vector<std::string> lists;
  for (const RankBinding& rank : plan.ranks) lists.push_back(rank.cpus.list());
  return ddl::join(lists, " ");
}

std::string mapping_refusal(const Topology& topology, const BindingPolicy& policy, int ranks) {
  const auto plan = plan_binding(topology, policy, ranks);
  return plan ? "planned" : plan.error().message();
}

}  // namespace

TEST_CASE("where each rank has an object of its own, its CPUs are mpirun's") {
  const Topology node = node_of_16_cores();
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kNuma), 4)) == "0-7 8-15 16-23 24-31");
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kSocket), 2)) == "0-15 16-31");
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kL3), 6)) == "0-3 4-7 8-11 12-15 16-19 20-23");
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kCore), 6)) == "0-1 2-3 4-5 6-7 8-9 10-11");
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kPu), 6)) == "0 1 2 3 4 5");
  // ppr:2:socket: mpirun binds to the NUMA nodes of the socket.
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kSocket, 2), 4)) == "0-7 8-15 16-23 24-31");
}

TEST_CASE("ranks that share an object, which mpirun binds to all of it, have parts of it") {
  const Topology node = node_of_16_cores();
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kNuma, 2), 3)) == "0-3 4-7 8-15");
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kNuma, 2), 8)) ==
        "0-3 4-7 8-11 12-15 16-19 20-23 24-27 28-31");
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kNuma), 6)) == "0-3 8-11 16-23 24-31 4-7 12-15");
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kCore, 2), 4)) == "0 1 2 3");
  const BindingPlan plan = planned(node, mapped(BindTo::kNuma), 5);
  CHECK(plan.ranks[0].why == "is rank 1 of 2 on NUMA node 0");
  CHECK(plan.ranks[1].why == "is mapped to NUMA node 1");
  CHECK(plan.ranks[4].why == "is rank 2 of 2 on NUMA node 0");
}

TEST_CASE("--bind-to narrows what a mapped rank has, and never widens it") {
  const Topology node = node_of_16_cores();
  BindingPolicy policy = mapped(BindTo::kNuma, 1);
  policy.bind_to = BindTo::kCore;
  CHECK(cpus_of_ranks(planned(node, policy, 3)) == "0-1 8-9 16-17");
  policy.bind_to = BindTo::kSocket;
  CHECK(cpus_of_ranks(planned(node, policy, 3)) == "0-7 8-15 16-23");
  policy.bind_to = BindTo::kNone;
  CHECK(plan_binding(node, policy, 3)->ranks.empty());
}

TEST_CASE("with PE=N each rank has the next N cores of its object, as with mpirun") {
  const Topology node = node_of_16_cores();
  BindingPolicy policy = mapped(BindTo::kNuma, 2);
  policy.cores_per_rank = 2;
  CHECK(cpus_of_ranks(planned(node, policy, 4)) == "0-3 4-7 8-11 12-15");
  policy.mapping.ranks_per_object = 0;
  CHECK(cpus_of_ranks(planned(node, policy, 5)) == "0-3 8-11 16-19 24-27 4-7");
  policy.cores_per_rank = 5;
  CHECK(
      mapping_refusal(node, policy, 4) ==
      "--map-by numa: 1 rank with 5 cores each need 5, and NUMA node 0 has 4 usable; ask for fewer cores for "
      "each rank, or for fewer ranks");
  policy.mapping.object = BindTo::kPu;
  CHECK_THAT(mapping_refusal(node, policy, 4),
             Catch::Contains("--map-by hwthread: a hardware thread is no 5 cores"));
}

TEST_CASE("only objects with CPUs that the job may use count") {
  Topology node = node_of_16_cores();
  node.allowed = CpuSet::range(0, 3) | CpuSet::range(16, 31);
  std::erase_if(node.cores, [&](const Core& core) { return !core.cpus.intersects(node.allowed); });
  CHECK(max_mapped_ranks(node, mapped(BindTo::kNuma, 2)).value() == 6);
  CHECK(max_mapped_ranks(node, mapped(BindTo::kSocket, 3)).value() == 6);
  CHECK(max_mapped_ranks(node, mapped(BindTo::kPu, 1)).value() == 20);
  CHECK(cpus_of_ranks(planned(node, mapped(BindTo::kNuma, 1), 3)) == "0-3 16-23 24-31");
  BindingPolicy reserving = mapped(BindTo::kL3, 1);
  reserving.reserved.cpus = CpuSet::range(16, 19);
  CHECK(max_mapped_ranks(node, reserving).value() == 4);
}

TEST_CASE("more ranks than an object can take are refused, or share it with --oversubscribe") {
  const Topology node = node_of_16_cores();
  CHECK(mapping_refusal(node, mapped(BindTo::kNuma, 2), 9) ==
        "--map-by ppr:2:numa lets the node take 8 ranks, and 9 are for it");
  CHECK(mapping_refusal(node, mapped(BindTo::kCore), 33) ==
        "--map-by core: the core of CPU 0: 1 usable core for 3 ranks; --oversubscribe lets them share");
  CHECK(mapping_refusal(node, mapped(BindTo::kPu), 33) ==
        "--map-by hwthread: CPU 0 for 2 ranks; --oversubscribe lets them share");
  for (const BindTo object : {BindTo::kCore, BindTo::kPu}) {
    BindingPolicy policy = mapped(object);
    policy.oversubscribe = true;
    const BindingPlan plan = planned(node, policy, 33);
    CHECK(plan.ranks[0].cpus.contains(0));
    CHECK(plan.ranks[32].cpus.contains(0));
    CHECK_FALSE(plan.warnings.empty());
  }
  Topology unknown = Model{2, 1, 1, 4, 1, false}.topology();
  CHECK_THAT(mapping_refusal(unknown, mapped(BindTo::kL3), 2), Catch::Contains("it is unknown which cores"));
  CHECK_FALSE(max_mapped_ranks(unknown, mapped(BindTo::kL3, 1)));
}

TEST_CASE("objects and cores are taken in hwloc's order, also if CPUs are numbered across packages") {
  const auto node = hwloc_synthetic("pack:2 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)")->load();
  REQUIRE(node);
  CHECK(cpus_of_ranks(planned(*node, mapped(BindTo::kCore), 6)) == "0 2 4 6 1 3");
  CHECK(cpus_of_ranks(planned(*node, mapped(BindTo::kSocket, 2), 3)) == "0,2 4,6 1,3,5,7");
}

TEST_CASE("mapped ranks are placed by CPU, also on a node with GPUs") {
  Topology node = ex235a().topology();
  add_gpus_on_l3(node, {6, 7, 2, 3, 0, 1, 4, 5});
  const BindingPlan plan = planned(node, mapped(BindTo::kNuma, 1), 4);
  CHECK(plan.ranks[0].numa_nodes == std::vector{0});
  CHECK(plan.ranks[0].gpus.empty());
  BindingPolicy policy = mapped(BindTo::kNuma, 1);
  policy.gpus_per_rank = 1;
  CHECK_THAT(mapping_refusal(node, policy, 4),
             Catch::Contains("need --bind-to gpu, not --map-by ppr:1:numa"));
}
