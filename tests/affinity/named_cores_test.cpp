// Ranks on named cores. The CPUs are those to which mpirun of Open MPI 4.1.4 binds by the same rankfile on the same
// node: HWLOC_SYNTHETIC="pack:2 numa:2 l3:2 core:2 pu:2" mpirun --display-devel-map --rankfile FILE true
#include "affinity/plan/named_cores.h"

#include "affinity/source/topology_source.h"
#include "affinity/support/model.h"
#include "support/catch.h"

using ddl::CpuSet;
using namespace ddl::affinity;
using namespace ddl::affinity::test;

namespace {

constexpr int kAll = CoreRange::kToTheEnd;

Topology node_of(const char* synthetic) {
  auto node = hwloc_synthetic(synthetic)->load();
  REQUIRE(node);
  return *std::move(node);
}

/// The CPUs of a rank on these cores, or why there are none.
std::string cpus_on(const Topology& node, const NamedCores& named) {
  const auto cores = find_cores(node, named);
  if (!cores) return cores.error().message();
  return plan_on_cores(node, {}, {{*cores, "a test"}}).ranks.at(0).cpus.list();
}

}  // namespace

TEST_CASE("a rank has all hardware threads of the cores that are named, as with mpirun") {
  const Topology node = node_of("pack:2 numa:2 l3:2 core:2 pu:2");
  CHECK(cpus_on(node, {{{}, 0, 1}}) == "0-3");                                    // 0-1
  CHECK(cpus_on(node, {{1, 0, 2}}) == "16-21");                                   // 1:0-2
  CHECK(cpus_on(node, {{0, 0, 0}, {1, 1, 1}}) == "0-1,18-19");                    // 0:0,1:1
  CHECK(cpus_on(node, {{{}, 0, 0}, {{}, 4, 4}, {{}, 6, 6}}) == "0-1,8-9,12-13");  // 0,4,6
  CHECK(cpus_on(node, {{{}, 0, 0}, {{}, 9, 10}}) == "0-1,18-21");                 // 0,9-10
  CHECK(cpus_on(node, {{1, 0, kAll}}) == "16-31");                                // 1:*
  CHECK(cpus_on(node, {{0, 1, 1}, {1, 0, 2}}) == "2-3,16-21");                    // 0:1;1:0-2
  CHECK(cpus_on(node, {{1, 0, 0}, {{}, 3, 3}}) == "6-7,16-17");                   // 1:0;3
  // mpirun 4.1.4 refuses 0:0,1,4, and has only the first core of 1:0,1. Open MPI 5.0.8 binds as its manual says.
  CHECK(cpus_on(node, {{0, 0, 0}, {0, 1, 1}, {0, 4, 4}}) == "0-3,8-9");
  CHECK(cpus_on(node, {{1, 0, 0}, {1, 1, 1}}) == "16-19");
  // Both read the star of slot=* as core 0. All cores are meant.
  CHECK(cpus_on(node, {{{}, 0, kAll}}) == "0-31");
}

TEST_CASE("CPUs of the operating system stand for their cores, as mpirun has it") {
  // mpirun --mca rmaps_rank_file_physical 1: slot=1-3,17, and p0-3 where CPUs are numbered in the packages in turn.
  const auto cpus = [](int first, int last) { return CoreRange{{}, first, last, true}; };
  CHECK(cpus_on(node_of("pack:2 numa:2 l3:2 core:2 pu:2"), {cpus(1, 3), cpus(17, 17)}) == "0-3,16-17");
  const Topology node = node_of("pack:2 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)");
  CHECK(cpus_on(node, {cpus(0, 3)}) == "0-3");
  CHECK(cpus_on(node, {cpus(6, 65535)}) == "there is no CPU 8: the node has CPUs 0-7");
}

TEST_CASE("cores are counted in hwloc's order, and not as the operating system numbers CPUs") {
  const Topology node = node_of("pack:2 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)");
  CHECK(cpus_on(node, {{{}, 1, 1}}) == "2");
  CHECK(cpus_on(node, {{{}, 4, 5}}) == "1,3");
  CHECK(cpus_on(node, {{1, 0, 1}}) == "1,3");
}

TEST_CASE("cores that a node does not have, or that the job may not use, are named") {
  Topology node = node_of("pack:2 core:4 pu:2");
  CHECK(cpus_on(node, {{{}, 7, 9}}) == "there is no core 9: the node has 8 cores, which count from 0");
  CHECK(cpus_on(node, {{1, 4, 4}}) ==
        "there is no core 4 of package 1: the package has 4 cores, which count from 0");
  CHECK(cpus_on(node, {{2, 0, kAll}}) ==
        "there is no package 2: the node has 2 packages, which count from 0");
  // As after taskset -c 0-3,9-15: core 2 and 3 are missing, and core 4 has a thread.
  node.allowed = CpuSet::range(0, 3) | CpuSet::range(9, 15);
  std::erase_if(node.cores, [&](const Core& core) { return !core.cpus.intersects(node.allowed); });
  for (Core& core : node.cores) core.cpus = core.cpus & node.allowed;
  CHECK(cpus_on(node, {{{}, 3, 4}}) == "the job may not use core 3 (CPUs 6-7); it may use CPUs 0-3,9-15");
  CHECK(cpus_on(node, {{{}, 4, 5}}) == "9-11");
  CHECK(cpus_on(node, {{{}, 6, 8, true}}) == "the job may not use CPU 6; it may use CPUs 0-3,9-15");
  // All of a package, or of the node, are those that the job may use.
  CHECK(cpus_on(node, {{0, 0, kAll}}) == "0-3");
  CHECK(cpus_on(node, {{{}, 0, kAll}}) == "0-3,9-15");
  std::erase_if(node.cores, [](const Core& core) { return core.package == 0; });
  CHECK(cpus_on(node, {{0, 0, kAll}}) == "the job may use no core of package 0; it may use CPUs 0-3,9-15");
}

TEST_CASE("ranks may share named cores, with a warning") {
  const Topology node = node_of("core:4 pu:1");
  const BindingPlan plan = plan_on_cores(node, {}, {{{0, 1}, "a"}, {{1, 2}, "b"}});
  CHECK(plan.ranks[1].cpus.list() == "1-2");
  CHECK(plan.ranks[1].threads == 2);
  REQUIRE(plan.warnings.size() == 1);
  CHECK_THAT(plan.warnings.front(), Catch::Contains("local ranks 0 and 1 share the core of CPU 1"));
  CHECK(plan_on_cores(node, {}, {{{0}, "a"}, {{1}, "b"}}).warnings.empty());
}
