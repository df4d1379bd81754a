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

TEST_CASE("lscpu's CPUs that are numbered in the nodes in turn are cores, and their threads are found") {
  const auto node_of = [](const std::string& threads, const std::string& second = "1,3,5,7,9,11,13,15") {
    const auto node = topology_of_text(
        threads + "NUMA node0 CPU(s):   0,2,4,6,8,10,12,14\nNUMA node1 CPU(s):   " + second + "\n", "t");
    REQUIRE(node);
    return *node;
  };
  // Two packages of four cores: Linux numbers the first threads of all cores, and then the second ones.
  const Topology smt = node_of("Thread(s) per core:  2\n");
  REQUIRE(smt.cores.size() == 8);
  CHECK(smt.cores[0].cpus.list() == "0,8");
  CHECK(smt.cores[1].cpus.list() == "1,9");
  CHECK(smt.cores[7].cpus.list() == "7,15");
  CHECK(smt.cores[1].numa == 1);
  CHECK(smt.warnings.size() == 1);
  CHECK(node_of("Thread(s) per core:  1\n").cores.size() == 16);
  CHECK(node_of("Thread(s) per core:  1\n").warnings.size() == 1);
  const Topology unknown = node_of("");
  CHECK(unknown.cores.size() == 16);
  CHECK_THAT(unknown.warnings.front(), Catch::Contains("does not say how many threads a core has"));
  // A CPU is offline, so threads cannot be told from each other.
  CHECK(node_of("Thread(s) per core:  2\n", "1,3,5").cores.size() == 4 + 3);
}

TEST_CASE("threads of a core are neighbours where nodes have one range each, and on POWER") {
  const auto cores_in = [](const std::string& text) {
    const auto node = topology_of_text(text, "t");
    REQUIRE(node);
    std::string all;
    for (const Core& core : node->cores) all += core.cpus.list() + " ";
    return all;
  };
  CHECK(cores_in("Thread(s) per core: 2\nNUMA node0 CPU(s): 0-3\nNUMA node1 CPU(s): 4-7\n") ==
        "0-1 2-3 4-5 6-7 ");
  CHECK(cores_in("Architecture: ppc64le\nThread(s) per core: 4\nNUMA node0 CPU(s): 0-7\n") == "0-3 4-7 ");
  CHECK(cores_in("Architecture: x86_64\nThread(s) per core: 2\nNUMA node0 CPU(s): 0-7\n") ==
        "0,4 1,5 2,6 3,7 ");
  CHECK(cores_in("Thread(s) per core: 2\nNUMA node0 CPU(s): 0-1,4-5\nNUMA node1 CPU(s): 2-3,6-7\n") ==
        "0,4 1,5 2,6 3,7 ");
  // A kernel without NUMA.
  CHECK(cores_in("On-line CPU(s) list:  0-3\nThread(s) per core: 2\n") == "0,2 1,3 ");
}

TEST_CASE("nvidia-smi's head line may be underlined, and a column empty") {
  const std::string rows =
      "GPU0\t X \tNV12\tPXB\t32-47\t2\t\tN/A\n"
      "GPU1\tNV12\t X \tSYS\t\t0\t\tN/A\n"
      "GPU2\tNV12\tNV12\tSYS\t\t\t\tN/A\n";
  for (const std::string head :
       {"\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n",
        "\t[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID[0m\n",
        "\t^[[4mGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID^[[0m\n"}) {
    CAPTURE(head);
    const auto node = topology_of_text(head + rows + kLscpu, "t");
    REQUIRE(node);
    REQUIRE(node->gpus.size() == 3);
    CHECK(node->gpus[0].local_cpus.list() == "32-47");
    CHECK(node->gpus[1].local_cpus.list() == "0-15,64-79");  // of its NUMA node
    CHECK(node->gpus[1].numa == 0);
    CHECK(node->gpus[2].local_cpus.is_empty());
    CHECK(node->gpus[2].numa == -1);
  }
  // As an editor has them that has made blanks of tabs.
  const auto node = topology_of_text(
      "        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
      "GPU0     X      SYS     16-31           1               N/A\n"
      "GPU1    SYS      X                      3               N/A\n" +
          std::string(kLscpu),
      "t");
  REQUIRE(node);
  CHECK(node->gpus.at(0).local_cpus.list() == "16-31");
  CHECK(node->gpus.at(1).numa == 3);
}

TEST_CASE("nvidia-smi alone gives the CPUs near GPUs") {
  const std::string head = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
  const auto node = topology_of_text(
      head + "GPU0\t X \tSYS\t24-47,72-95\t1\t\tN/A\nGPU1\tSYS\t X \t0-23,48-71\t0\t\tN/A\n", "t");
  REQUIRE(node);
  CHECK(node->cores.size() == 48);
  CHECK(node->gpus[0].numa == 1);
  const auto plan = plan_binding(*node, {}, 2);
  REQUIRE(plan);
  CHECK(as_map_cpu(*plan) == "map_cpu:24,0");
  CHECK_THAT(plan->warnings.front(), Catch::Contains("has only the CPUs near GPUs"));
  // Without numbers of nodes they are counted.
  const auto counted =
      topology_of_text(head + "GPU0\t X \tSYS\t0-3\tN/A\t\tN/A\nGPU1\tSYS\t X \t4-7\tN/A\n", "t");
  REQUIRE(counted);
  CHECK(counted->gpus[1].numa == 1);
  const auto none = topology_of_text(head + "GPU0\t X \tSYS\t\t\t\tN/A\n", "t");
  REQUIRE_FALSE(none);
  CHECK_THAT(none.error().message(), Catch::Contains("add the output of `LC_ALL=C lscpu`"));
}

TEST_CASE("amd-smi says which NUMA node a GPU is near") {
  const std::string text =
      "GPU: 0\n    BDF: 0000:C1:00.0\n    NUMA:\n        NODE: 3\n        AFFINITY: 3\n\n"
      "GPU: 1\n    NUMA:\n        NODE: 1\n        AFFINITY: NONE\n        CPU_AFFINITY:\n            "
      "CPU_LIST_0:\n"
      "                BITMASK: FFFF0000\n                CPU_CORES_AFFINITY: 16-31\n"
      "        SOCKET_AFFINITY:\n            CPU_LIST_0:\n                CPU_CORES_AFFINITY: 0-63\n";
  const auto node = topology_of_text(text + kLscpu, "t");
  REQUIRE(node);
  REQUIRE(node->gpus.size() == 2);
  CHECK(node->gpus[0].vendor == GpuVendor::kAmd);
  CHECK(node->gpus[0].local_cpus.list() == "48-63,112-127");
  CHECK(node->gpus[1].local_cpus.list() == "16-31");
  CHECK(node->gpus[1].numa == 1);
  const std::string tables =
      "ACCESS TABLE:\n             0000:c1:00.0 0000:c6:00.0\n0000:c1:00.0 ENABLED      ENABLED\n"
      "0000:c6:00.0 ENABLED      ENABLED\n\nHOPS TABLE:\n             0000:c1:00.0 0000:c6:00.0\n"
      "0000:c1:00.0 0            1\n0000:c6:00.0 1            0\n";
  const auto linked = topology_of_text(tables + kLscpu, "t");
  REQUIRE(linked);
  REQUIRE(linked->gpus.size() == 2);
  CHECK(linked->gpus[1].bus_id == "0000:c6:00.0");
  CHECK(linked->gpus[1].numa == -1);
  CHECK_THAT(linked->warnings.front(), Catch::Contains("add the output of `amd-smi static --numa`"));
  const auto both = topology_of_text(tables + text + kLscpu, "t");
  REQUIRE(both);
  CHECK(both->gpus.at(1).bus_id == "0000:c6:00.0");
  CHECK(both->gpus.at(1).numa == 1);
}

TEST_CASE("of the devices that lspci lists only AMD's GPUs are GPUs of AMD") {
  const std::string lspci =
      "0000:00:00.0 Host bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex\n"
      "0000:00:08.1 Encryption controller: Advanced Micro Devices, Inc. [AMD] Starship/Matisse PSPCPP\n"
      "0000:01:00.0 Audio device [0403]: Advanced Micro Devices, Inc. [AMD/ATI] Navi 21 HDMI Audio\n"
      "0000:02:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family\n"
      "0000:03:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 40GB] (rev a1)\n"
      "0000:c1:00.0 Display controller [0380]: Advanced Micro Devices, Inc. [AMD/ATI] Aldebaran/MI200\n"
      "0000:c6:00.0 Processing accelerators: Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram\n";
  const auto topology = topology_of_text(lspci + kLscpu, "t");
  REQUIRE(topology);
  REQUIRE(topology->gpus.size() == 2);
  CHECK(topology->gpus[0].bus_id == "0000:c1:00.0");
  CHECK(topology->gpus[1].bus_id == "0000:c6:00.0");
}

TEST_CASE("lscpu in another language is refused with what to run") {
  for (const char* text : {"NUMA-Knoten0 CPU(s):          0-15,64-79\n", "CPU(s) del nodo NUMA 0:  0-7\n",
                           "NUMA 节点0 CPU：                0-7\r\n"}) {
    const auto topology = topology_of_text(text, "ticket.txt");
    REQUIRE_FALSE(topology);
    CHECK_THAT(topology.error().message(),
               Catch::Contains("ticket.txt") && Catch::Contains("`LC_ALL=C lscpu`"));
  }
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
