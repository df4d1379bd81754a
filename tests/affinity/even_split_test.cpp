// Ranks on nodes that they do not divide evenly, and on nodes whose cores are not alike.
#include "affinity/output/binding_format.h"
#include "affinity/plan/binding_plan.h"
#include "affinity/plan/rank_assignment.h"
#include "affinity/source/core_kinds.h"
#include "affinity/source/topology_source.h"
#include "affinity/support/model.h"
#include "affinity/support/planned.h"
#include "base/text.h"
#include "support/catch.h"

using ddl::CpuSet;
using namespace ddl::affinity;
using namespace ddl::affinity::test;

namespace {

/// "0-2 3-5": the CPUs of each rank.
std::string cpus_of(const BindingPlan& plan) {
  std::vector<std::string> all;
  for (const RankBinding& rank : plan.ranks) all.push_back(rank.cpus.list());
  return ddl::join(all, " ");
}

/// The numbers of cores of the ranks, and then the warnings.
std::string split_text(const BindingPlan& plan) {
  std::vector<std::string> all;
  for (const RankBinding& rank : plan.ranks) all.push_back(std::to_string(rank.threads));
  for (const std::string& warning : plan.warnings) all.push_back(warning);
  return ddl::join(all, " ");
}

/// A package with an L3 for all cores: first the fast ones, of two hardware threads, then the slow ones.
Topology hybrid(int fast, int slow) {
  Topology node = Model{1, 1, 1, fast + slow, 1, true}.topology();
  for (int i = 0; i < fast + slow; ++i) node.cores[i].kind = i < fast ? 0 : 1;
  node.core_kinds = {{"P", CpuSet::range(0, fast - 1)}, {"E", CpuSet::range(fast, fast + slow - 1)}};
  return node;
}

}  // namespace

TEST_CASE("ranks that the packages do not divide have even shares, and a warning names who lies on several") {
  const Topology two = Model{2, 1, 1, 32, 1, false}.topology();
  CHECK(split_text(planned(two, {}, 3)) ==
        "22 21 21 local rank 1 lies on several packages, because 3 ranks cannot share 2 packages evenly; "
        "--cores-per-rank 16 keeps each on one package");
  CHECK(cpus_of(planned(two, {}, 3)) == "0-21 22-42 43-63");
  BindingPolicy policy;
  policy.cores_per_rank = 16;
  CHECK(cpus_of(planned(two, policy, 3)) == "0-15 16-31 32-47");
  CHECK(planned(two, policy, 3).warnings.empty());
  // With four NUMA nodes in each package, whole NUMA nodes would be 24, 24 and 16 cores.
  CHECK_THAT(split_text(planned(Model{2, 4, 1, 8, 1, true}.topology(), {}, 3)),
             Catch::StartsWith("22 21 21 local rank 1 lies on several packages"));
  CHECK(split_text(planned(Model{2, 4, 1, 8, 1, true}.topology(), {}, 6)) ==
        "11 11 10 11 11 10 local ranks 0-5 lie on several NUMA nodes, because 6 ranks cannot share 8 NUMA "
        "nodes "
        "evenly; --cores-per-rank 8 keeps each on one NUMA node");
  // Even shares that cut nothing.
  CHECK(split_text(planned(Model{1, 4, 3, 8, 1, true}.topology(), {}, 12)) == "8 8 8 8 8 8 8 8 8 8 8 8");
  CHECK(cpus_of(planned(Model{4, 1, 1, 2, 1, false}.topology(), {}, 2)) == "0-3 4-7");
  CHECK(split_text(planned(Model{3, 1, 1, 8, 1, false}.topology(), {}, 2)) ==
        "12 12 local ranks 0-1 lie on several packages, because 2 ranks cannot share 3 packages evenly; "
        "--cores-per-rank 8 keeps each on one package");
}

TEST_CASE("the number of cores that a warning advises cuts nothing") {
  const std::string option = "--cores-per-rank ";
  int advised = 0;
  for (const Model& model : {Model{2, 1, 1, 32, 1, false}, Model{2, 4, 2, 8, 1, true},
                             Model{3, 2, 1, 6, 2, true}, Model{1, 4, 1, 16, 1, true}}) {
    for (int ranks = 2; ranks <= 13; ++ranks) {
      CAPTURE(model.packages, model.numa_per_package, ranks);
      for (const std::string& warning : planned(model.topology(), {}, ranks).warnings) {
        const std::size_t at = warning.find(option);
        REQUIRE(at != std::string::npos);
        BindingPolicy policy;
        policy.cores_per_rank = std::stoi(warning.substr(at + option.size()));
        // Whole packages may still need a part of a NUMA node, which a second warning says.
        const std::string domain =
            warning.find("several packages") == std::string::npos ? "NUMA nodes" : "packages";
        for (const std::string& left : planned(model.topology(), policy, ranks).warnings)
          CHECK_THAT(left, !Catch::Contains("several " + domain));
        ++advised;
      }
    }
  }
  CHECK(advised > 10);
}

TEST_CASE("a package of which the job has fewer cores takes fewer ranks") {
  // Of package 0 four cores are left, of package 1 twelve.
  Topology node = Model{2, 1, 1, 12, 1, false}.topology(CpuSet::range(8, 23));
  CHECK(cpus_of(planned(node, {}, 4)) == "8-11 12-15 16-19 20-23");
  CHECK(planned(node, {}, 4).warnings.empty());
  // Four and twelve would be too different.
  CHECK_THAT(split_text(planned(node, {}, 2)),
             Catch::StartsWith("8 8 local rank 0 lies on several packages"));
  // One core of 64 is left to the system.
  node = Model{2, 1, 1, 32, 1, false}.topology(CpuSet::range(1, 63));
  CHECK(cpus_of(planned(node, {}, 2)) == "1-31 32-63");
  CHECK(planned(node, {}, 2).warnings.empty());
}

TEST_CASE("cores that are numbered in the packages in turn are split by package") {
  const auto node = hwloc_synthetic("pack:2 core:6 pu:1(indexes=0,2,4,6,8,10,1,3,5,7,9,11)")->load();
  REQUIRE(node);
  CHECK(cpus_of(planned(*node, {}, 4)) == "0,2,4 6,8,10 1,3,5 7,9,11");
  CHECK(cpus_of(planned(*node, {}, 3)) == "0,2,4,6 1,3,8,10 5,7,9,11");
}

TEST_CASE("domains that are asked for and not even are shown with the numbers of cores") {
  BindingPolicy policy;
  policy.bind_to = BindTo::kNuma;
  CHECK(split_text(planned(Model{2, 1, 1, 32, 1, false}.topology(), policy, 3)) ==
        "16 16 32 local rank 0 has 16 cores and local rank 2 has 32 cores");
  CHECK(planned(Model{2, 1, 1, 32, 1, false}.topology(), policy, 4).warnings.empty());
}

TEST_CASE("ranks have fast and slow cores alike, or a warning") {
  const Topology node = hybrid(8, 16);
  CHECK(cpus_of(planned(node, {}, 2)) == "0-3,8-15 4-7,16-23");
  CHECK(cpus_of(planned(node, {}, 4)) == "0-1,8-11 2-3,12-15 4-5,16-19 6-7,20-23");
  CHECK(planned(node, {}, 4).warnings.empty());
  // Three ranks have eight cores each.
  CHECK(split_text(planned(node, {}, 3)) ==
        "8 8 8 cores of ranks are of different kinds: local rank 0 has 3 P and 5 E, local rank 2 has 2 P and "
        "6 E");
  CHECK(split_text(planned(node, {}, 12)) ==
        "2 2 2 2 2 2 2 2 2 2 2 2 cores of ranks are of different kinds: local rank 0 has 2 P, local rank 4 "
        "has 2 E");
  // Two packages, of which one has the fast cores, are not shared out as packages.
  Topology apart = Model{2, 1, 1, 4, 1, true}.topology();
  for (int i = 0; i < 8; ++i) apart.cores[i].kind = i / 4;
  apart.core_kinds = {{"P", CpuSet::range(0, 3)}, {"E", CpuSet::range(4, 7)}};
  CHECK(cpus_of(planned(apart, {}, 2)) == "0-1,4-5 2-3,6-7");
  // Ranks with GPUs, too.
  Topology gpus = hybrid(4, 4);
  add_gpus_on_numa(gpus, {0, 0});
  CHECK(cpus_of(planned(gpus, {}, 2)) == "0-1,4-5 2-3,6-7");
  CHECK(cpus_of(planned(gpus, {}, 4)) == "0,4 1,5 2,6 3,7");
}

TEST_CASE("cores of one design are one kind, whatever the clock of some of them") {
  const CpuSet a = CpuSet::range(0, 1), b = CpuSet::range(2, 5), c = CpuSet::range(6, 9);
  const auto named = [](std::vector<ListedKind> listed) {
    std::string text;
    for (const CoreKind& kind : kinds_of(std::move(listed))) text += kind.name + ":" + kind.cpus.list() + " ";
    return text;
  };
  CHECK(named({{c, 0, "IntelAtom", 0, 3900}, {b, 1, "IntelCore", 0, 5100}, {a, 2, "IntelCore", 0, 5500}}) ==
        "P:0-5 E:6-9 ");
  CHECK(named({{c, 0, "", 446, 0}, {b, 1, "", 871, 0}, {a, 2, "", 1024, 0}}) == "P:0-5 E:6-9 ");
  CHECK(named({{c, 0, "", 250, 0}, {b, 1, "", 600, 0}, {a, 2, "", 1024, 0}}) == "1:0-1 2:2-5 3:6-9 ");
  CHECK(named({{a, -1, "", 0, 1800}, {b, -1, "", 0, 1400}}) == "P:0-1 E:2-5 ");
  // A server some of whose cores turbo a little higher.
  CHECK(named({{a, 1, "", 0, 4100}, {b, 0, "", 0, 3800}}).empty());
  CHECK(named({{a, 1, "", 0, 0}, {b, 0, "", 0, 3800}}).empty());
  CHECK(named({}).empty());
  Topology node = Model{1, 1, 1, 10, 1, true}.topology();
  set_core_kinds(node, {{"P", a}, {"E", b}});
  CHECK(node.core_kinds.empty());  // CPUs 6 to 9 are of neither
  set_core_kinds(node, {{"P", a}, {"E", b | c}});
  CHECK(node.cores[1].kind == 0);
  CHECK(node.cores[9].kind == 1);
  CHECK(is_consistent(node));
}

TEST_CASE("where no speeds are known, messages take InfiniBand and not Ethernet") {
  Topology node = Model{2, 1, 1, 4, 1, false}.topology();
  add_gpus_on_numa(node, {0, 1});
  const auto nic = [&](const char* name, int numa, double speed, bool is_fabric) {
    Nic one;
    one.name = name;
    one.numa = numa;
    one.bus_speed = speed;
    one.is_fabric = is_fabric;
    one.local_cpus = node.numa_nodes[numa].complete;
    return one;
  };
  node.nics = {nic("eno1", 0, 0, false), nic("ib0", 0, 0, true), nic("ib1", 1, 0, true)};
  CHECK(nics_of_gpus(node) == std::vector<std::string>{"ib0", "ib1"});
  // One that is known to be slow loses against one of unknown speed, if that is of a fabric.
  node.nics = {nic("eno1", 0, 2, false), nic("ib0", 0, 0, true)};
  CHECK(nics_of_gpus(node).front() == "ib0");
  node.nics = {nic("eno1", 0, 31.5, false), nic("eno2", 0, 0, false)};
  CHECK(nics_of_gpus(node).front() == "eno1");
  node.nics = {nic("eno1", 0, 0, false), nic("eno2", 1, 0, false)};
  CHECK(nics_of_gpus(node) == std::vector<std::string>{"eno1", "eno2"});
}

TEST_CASE("GPUs of two vendors are a warning, and named with their vendor") {
  Topology node = Model{2, 1, 1, 4, 1, false}.topology();
  add_gpus_on_numa(node, {0, 1});
  CHECK(mixed_vendors(node).empty());
  node.gpus[0].vendor = GpuVendor::kNvidia;
  node.gpus[1].vendor = GpuVendor::kAmd;
  node.gpus[1].index = 0;
  const BindingPlan plan = planned(node, {}, 2);
  REQUIRE(plan.warnings.size() == 1);
  CHECK_THAT(plan.warnings.front(),
             Catch::StartsWith("the node has GPUs of nvidia and amd, and ranks have either"));
}
