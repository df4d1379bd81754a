// Topologies that hwloc reads: this machine's, synthetic ones, files.
#include "affinity/source/topology_source.h"

#include <sched.h>

#include <fstream>

#include "affinity/output/binding_text.h"
#include "affinity/plan/planner.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl::affinity;
using ddl::test::TemporaryDirectory;

namespace {

std::string failure_of(const TopologySource& source) {
  const auto topology = source.load();
  return topology ? "loaded" : topology.error().message();
}

std::string written(const TemporaryDirectory& folder, const std::string& text) {
  std::string path = folder.path() + "/node.xml";
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("this machine has what this process may use") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  const auto all = this_machine(Devices::kAll)->load();
  REQUIRE(all);
  CHECK(is_consistent(*all));
  CHECK(all->allowed.count() == CPU_COUNT(&before));

  const int last = all->allowed.cpus().back();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const auto narrow = this_machine(Devices::kBesideGpus)->load();
  ::sched_setaffinity(0, sizeof before, &before);
  REQUIRE(narrow);
  CHECK(narrow->allowed == CpuSet::of({last}));
  CHECK(narrow->cores.size() == 1);
  CHECK(narrow->complete == all->complete);
}

TEST_CASE("hwloc's synthetic form is a topology") {
  const auto node = topology_named("pack:2 numa:2 l3:2 core:4 pu:2")->load();
  REQUIRE(node);
  CHECK(node->packages.size() == 2);
  CHECK(node->numa_nodes.size() == 4);
  CHECK(node->l3s.size() == 8);
  CHECK(node->cores.size() == 32);
  CHECK(node->allowed.count() == 64);
  const auto plan = plan_binding(*node, {}, 4);
  REQUIRE(plan);
  CHECK(as_map_cpu(*plan) == "map_cpu:0,16,32,48");
}

TEST_CASE("what is no topology is refused with what is wrong about it") {
  const TemporaryDirectory folder;
  CHECK_THAT(failure_of(*topology_named("pack:2 apples:3")), Catch::Contains("pack:2 apples:3"));
  CHECK_THAT(failure_of(*topology_named(folder.path() + "/none.xml")), Catch::Contains("none.xml"));
  CHECK_THAT(failure_of(*hwloc_xml(written(folder, "nonsense"))),
             Catch::Contains("no topology that hwloc has written"));
  CHECK_THAT(
      failure_of(*hwloc_xml(written(
          folder,
          "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"3.0\">"))),
      Catch::Contains("hwloc 3"));
}
