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
             Catch::Contains("is not a topology that hwloc has written"));
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

TEST_CASE("packages without usable numbers are counted") {
  const TemporaryDirectory folder;
  std::stringstream stream;
  stream << std::ifstream(std::string(DDL_TEST_TOPOLOGIES) + "/mi300a-4.xml").rdbuf();
  const auto numbered = [&](const std::vector<std::string>& attributes) {
    std::string text = stream.str();
    for (int i = 0; i < 4; ++i) {
      const std::string before = "<object type=\"Package\" os_index=\"" + std::to_string(i) + "\"";
      const std::size_t at = text.find(before);
      REQUIRE(at != std::string::npos);
      text.replace(at, before.size(), "<object type=\"Package\"" + attributes[i]);
    }
    const auto node = hwloc_xml(written(folder, text))->load();
    INFO((node ? std::string() : node.error().message()));
    REQUIRE(node);
    std::vector<int> numbers;
    for (const CpuDomain& package : node->packages) numbers.push_back(package.os_index);
    return numbers;
  };
  CHECK(numbered({"", "", "", ""}) == std::vector{0, 1, 2, 3});
  CHECK(numbered({" os_index=\"65536\"", " os_index=\"5418\"", " os_index=\"70000\"", " os_index=\"0\""}) ==
        std::vector{65536, 5418, 70000, 0});
  CHECK(numbered({" os_index=\"0\"", "", "", ""}) == std::vector{0, 1, 2, 3});
  CHECK(numbered({" os_index=\"7\"", " os_index=\"7\"", " os_index=\"8\"", " os_index=\"9\""}) ==
        std::vector{0, 1, 2, 3});
  CHECK(numbered({" os_index=\"4294967294\"", " os_index=\"1\"", " os_index=\"2\"", " os_index=\"3\""}) ==
        std::vector{0, 1, 2, 3});
}

TEST_CASE("hwloc's kinds of CPUs are performance and efficiency cores") {
  const TemporaryDirectory folder;
  // Cores 0 to 15 have the CPUs 0-15 and 64-79. The favoured one is of a kind of its own for hwloc.
  const std::string kinds =
      "  <cpukind cpuset=\"0xffffffff,0xffff0000,0xffffffff,0xffff0000\" forced_efficiency=\"-1\">\n"
      "    <info name=\"CoreType\" value=\"IntelAtom\"/>\n  </cpukind>\n"
      "  <cpukind cpuset=\"0x0000fffe,,0x0000fffe\" forced_efficiency=\"-1\">\n"
      "    <info name=\"FrequencyMaxMHz\" value=\"5100\"/><info name=\"CoreType\" value=\"IntelCore\"/>\n  "
      "</cpukind>\n"
      "  <cpukind cpuset=\"0x00000001,,0x00000001\" forced_efficiency=\"-1\">\n"
      "    <info name=\"FrequencyMaxMHz\" value=\"5500\"/><info name=\"CoreType\" value=\"IntelCore\"/>\n  "
      "</cpukind>\n";
  const auto node = hwloc_xml(written(folder, changed("\n</object>\n", "</topology>", kinds)))->load();
  INFO((node ? std::string() : node.error().message()));
  REQUIRE(node);
  REQUIRE(node->core_kinds.size() == 2);
  CHECK(node->core_kinds[0] == CoreKind{"P", CpuSet::range(0, 15) | CpuSet::range(64, 79)});
  CHECK(node->core_kinds[1].name == "E");
  CHECK(node->cores[15].kind == 0);
  CHECK(node->cores[16].kind == 1);
}

TEST_CASE("InfiniBand is told from Ethernet, and each vendor's GPUs are counted from 0") {
  const TemporaryDirectory folder;
  const auto node = hwloc_xml(std::string(DDL_TEST_TOPOLOGIES) + "/marenostrum5.xml")->load();
  REQUIRE(node);
  CHECK(node->nics.at(0).is_fabric);
  // The last GPU of eight of AMD is one of NVIDIA.
  std::stringstream stream;
  stream << std::ifstream(std::string(DDL_TEST_TOPOLOGIES) + "/ex235a.xml").rdbuf();
  std::string text = stream.str();
  const std::string amd = "0380 [1002:7408]";
  text.replace(text.rfind(amd), amd.size(), "0302 [10de:20b0]");
  const auto two = hwloc_xml(written(folder, text))->load();
  REQUIRE(two);
  REQUIRE(two->gpus.size() == 8);
  CHECK_FALSE(two->nics.at(0).is_fabric);  // Slingshot is Ethernet to PCI
  CHECK(two->gpus[0].vendor == GpuVendor::kNvidia);
  CHECK(two->gpus[0].index == 0);
  CHECK(two->gpus[1].vendor == GpuVendor::kAmd);
  CHECK(two->gpus[1].index == 0);
  CHECK(two->gpus[7].index == 6);
  CHECK(mixed_vendors(*two) == "the node has GPUs of nvidia and amd");
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
