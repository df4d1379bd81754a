// Recorded output of tools, as people paste it.
#include "affinity/source/topology_source.h"

#include <fmt/format.h>

#include "affinity/output/binding_format.h"
#include "affinity/plan/binding_plan.h"
#include "support/catch.h"

using namespace ddl::affinity;

namespace {

constexpr const char* kLscpu = R"(NUMA node(s):                4
NUMA node0 CPU(s):           0-15,64-79
NUMA node1 CPU(s):           16-31,80-95
NUMA node2 CPU(s):           32-47,96-111
NUMA node3 CPU(s):           48-63,112-127
)";

/// As rocm-smi prints a GPU's lines; form has places for the GPU and the node.
std::string rocm_smi(const std::string& form) {
  std::string text = "======================= Numa Nodes =======================\n";
  const int nodes[] = {3, 3, 1, 1, 0, 0, 2, 2};
  for (int gpu = 0; gpu < 8; ++gpu) {
    text += fmt::format(fmt::runtime(form), gpu, nodes[gpu]);
    text += fmt::format("GPU[{}]      : (Topology) Numa Affinity: {}\n", gpu, nodes[gpu]);
  }
  return text;
}

BindingPlan planned(const std::string& text, bool reserves) {
  const auto topology = topology_of_text(text, "ticket.txt");
  INFO((topology ? std::string() : topology.error().message()));
  REQUIRE(topology);
  BindingPolicy policy;
  policy.reserved.first_core_per_l3 = reserves;
  auto plan = plan_binding(*topology, policy, 8);
  REQUIRE(plan);
  return *std::move(plan);
}

}  // namespace

TEST_CASE("a listing of rocm-smi and lscpu gives LUMI-G's binding") {
  for (const char* form :
       {"GPU[{}]      : (Topology) Numa Node: {}\n", "GPU[{}]\t\t: (Topology) Numa Node: {}\r\n",
        "GPU {}  : (Topology) Numa Node: {}  \n"}) {
    CAPTURE(form);
    const BindingPlan plan = planned("user@uan01:~> srun rocm-smi\n" + rocm_smi(form) + kLscpu, true);
    CHECK(as_map_cpu(plan) == "map_cpu:49,57,17,25,1,9,33,41");
    CHECK_THAT(plan.warnings.back(), Catch::Contains("first core of each GPU's share"));
    CHECK(as_map_cpu(planned(kLscpu + rocm_smi(form), false)) == "map_cpu:48,56,16,24,0,8,32,40");
  }
}

TEST_CASE("a GPU whose NUMA node is unknown may use all CPUs, with a warning") {
  const auto topology = topology_of_text(std::string("GPU[0] : (Topology) Numa Node: -1\n") + kLscpu, "t");
  REQUIRE(topology);
  const auto plan = plan_binding(*topology, {}, 1);
  REQUIRE(plan);
  CHECK(plan->ranks[0].cpus.count() == 64);
  CHECK_THAT(plan->warnings.back(), Catch::Contains("it is unknown which CPUs are near it"));
}

TEST_CASE("a table of nvidia-smi is read by its head line") {
  const std::string text =
      "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNV12\tPXB\t32-47\t2\t\tN/A\n"
      "GPU1\tNV12\t X \tSYS\t0-15\t0\t\tN/A\n"
      "NIC0\tPXB\tSYS\t X \n" +
      std::string(kLscpu);
  const auto topology = topology_of_text(text, "t");
  REQUIRE(topology);
  REQUIRE(topology->gpus.size() == 2);
  CHECK(topology->gpus[0].local_cpus.list() == "32-47");
  CHECK(topology->gpus[0].vendor == GpuVendor::kNvidia);
  CHECK(topology->gpus[1].numa == 0);
}

TEST_CASE("text in which a CPU is in two places is refused") {
  for (const char* text :
       {"NUMA node0 CPU(s): 0-3,6-11\nNUMA node1 CPU(s): 4-7\n", "NUMA node1 CPU(s): 4-7,6-11\n"}) {
    const auto topology = topology_of_text(text, "ticket.txt");
    REQUIRE_FALSE(topology);
    CHECK_THAT(topology.error().message(),
               Catch::Contains("ticket.txt") && Catch::Contains("CPU 6 of NUMA node 1 is named twice"));
  }
}

TEST_CASE("text without CPUs is refused with the line that it lacks") {
  const auto topology = topology_of_text(rocm_smi("GPU[{}] : (Topology) Numa Node: {}\n"), "ticket.txt");
  REQUIRE_FALSE(topology);
  CHECK_THAT(topology.error().message(),
             Catch::Contains("ticket.txt") && Catch::Contains("NUMA node0 CPU(s)"));
}
