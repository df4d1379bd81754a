// Topologies that hwloc reads: this machine's, synthetic ones, files.
#include "affinity/source/topology_source.h"

#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "affinity/output/binding_format.h"
#include "affinity/plan/binding_plan.h"
#include "affinity/source/child_query.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using ddl::CpuSet;
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

/// A recorded node in which the last text between two other texts is replaced.
std::string changed(const std::string& before, const std::string& after, const std::string& value) {
  std::stringstream stream;
  stream << std::ifstream(std::string(DDL_TEST_TOPOLOGIES) + "/ex235a.xml").rdbuf();
  std::string text = stream.str();
  const std::size_t begin = text.rfind(before) + before.size();
  return text.replace(begin, text.find(after, begin) - begin, value);
}

std::string failure_in_child(const std::function<void()>& instead_of_loading,
                             std::chrono::seconds patience = std::chrono::seconds(30)) {
  const auto topology = topology_in_child(
      [&]() -> ddl::Result<Topology> {
        instead_of_loading();
        return Topology{};
      },
      "node.xml", patience);
  return topology ? "loaded" : topology.error().message();
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

TEST_CASE("input that is not a topology is refused with the reason") {
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

TEST_CASE(
    "reading a topology that somebody else has written may crash, hang or take memory, and that is an "
    "error") {
  CHECK_THAT(failure_in_child([] { ::raise(SIGKILL); }),
             Catch::StartsWith("node.xml: hwloc cannot read it (it crashed: SIGKILL"));
  CHECK_THAT(failure_in_child([] { ::pause(); }, std::chrono::seconds(0)),
             Catch::StartsWith("node.xml: hwloc cannot read it (no answer in time)"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK_THAT(failure_in_child([] {
               void* const memory = std::malloc(std::size_t{2} << 30);
               if (memory == nullptr) ::raise(SIGABRT);
               std::free(memory);
             }),
             Catch::StartsWith("node.xml: hwloc cannot read it (it crashed: SIGABRT"));
#endif
  CHECK(failure_in_child([] {}) == "node.xml: describes no node on which ranks could run");
}

TEST_CASE("files that crash hwloc are refused") {
  for (const char* name : {"missing_core.xml", "overlapping_cores.xml"}) {
    CAPTURE(name);
    CHECK_THAT(failure_of(*hwloc_xml(std::string(DDL_DAMAGED_TOPOLOGIES) + "/" + name)),
               Catch::Contains(name));
  }
}

TEST_CASE("numbers that no CPU and no NUMA node has are refused") {
  const TemporaryDirectory folder;
  const std::string cpu = changed("type=\"PU\" os_index=\"", "\"", "70000");
  CHECK_THAT(failure_of(*hwloc_xml(written(folder, cpu))), Catch::Contains("node.xml"));
  const std::string numa = changed("type=\"NUMANode\" os_index=\"", "\"", "4294967295");
  CHECK_THAT(failure_of(*hwloc_xml(written(folder, numa))), Catch::Contains("node.xml"));
}

TEST_CASE("a description of this machine that crashes hwloc is not used, with a warning") {
  const auto before = this_machine(Devices::kBesideGpus)->load();
  REQUIRE(before);
  ::setenv("HWLOC_XMLFILE", (std::string(DDL_DAMAGED_TOPOLOGIES) + "/missing_core.xml").c_str(), 1);
  const auto after = this_machine(Devices::kBesideGpus)->load();
  ::unsetenv("HWLOC_XMLFILE");
  REQUIRE(after);
  CHECK(after->cores == before->cores);
  CHECK(is_consistent(*after));
}
