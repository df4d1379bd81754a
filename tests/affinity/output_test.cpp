// Plans and nodes in all their forms.
#include <nlohmann/json.hpp>

#include "affinity/output/binding_format.h"
#include "affinity/output/topology_format.h"
#include "affinity/plan/binding_plan.h"
#include "affinity/source/topology_source.h"
#include "affinity/support/model.h"
#include "support/catch.h"

using namespace ddl::affinity;
using namespace ddl::affinity::test;

namespace {

/// Four cores with two threads in two L3s, two GPUs the other way round, a NIC beside the first of them.
Topology small_node() {
  Topology node = Model{1, 2, 1, 2, 2, true}.topology();
  node.source = "a <small> node";
  add_gpus_on_l3(node, {1, 0});
  Nic nic;
  nic.name = "hsn0";
  nic.numa = 1;
  nic.local_cpus = node.numa_nodes[1].complete;
  node.nics.push_back(nic);
  return node;
}

BindingPlan plan_of(const Topology& node) {
  auto plan = plan_binding(node, {}, 2);
  REQUIRE(plan);
  return *std::move(plan);
}

std::string printed(const char* form) {
  const Topology node = small_node();
  const auto format = parse_binding_format(form);
  REQUIRE(format);
  return format_binding(node, plan_of(node), *format);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a plan in the forms that other programs take") {
  CHECK(printed("map_cpu") == "map_cpu:2,0\n");
  CHECK(printed("mask_cpu") == "mask_cpu:0xc,0x3\n");
  CHECK(printed("srun") == "--cpu-bind=mask_cpu:0xc,0x3 --cpus-per-task=2\n");
  CHECK(printed("taskset") == "taskset -c 2-3\ntaskset -c 0-1\n");
  CHECK(printed("hwloc") ==
        "hwloc-bind --cpubind 0xc --membind nodeset:0x2\nhwloc-bind --cpubind 0x3 --membind nodeset:0x1\n");
  CHECK(printed("omp_places") == "{2},{3}\n{0},{1}\n");
  CHECK(printed("rankfile") == "rank 0=localhost slot=2-3\nrank 1=localhost slot=0-1\n");
  CHECK_FALSE(parse_binding_format("yaml"));
}

TEST_CASE("a rankfile has cores as hwloc counts them, and not CPUs of Linux") {
  Topology node = *hwloc_synthetic("pack:2 core:2 pu:2(indexes=0,4,2,6,1,5,3,7)")->load();
  REQUIRE(node.numbered_cores.at(1).cpus.list() == "2,6");
  const auto plan = plan_binding(node, {}, 2);
  REQUIRE(plan);
  CHECK(format_binding(node, *plan, BindingFormat::kTaskset) == "taskset -c 0,2\ntaskset -c 1,3\n");
  const std::string rankfile = format_binding(node, *plan, BindingFormat::kRankfile);
  CHECK(rankfile == "rank 0=localhost slot=0-1\nrank 1=localhost slot=2-3\n");
  // A core that taskset excludes is counted.
  std::erase_if(node.cores, [](const Core& core) { return core.cpus.contains(0); });
  CHECK(format_binding(node, plan_binding(node, {}, 1).value(), BindingFormat::kRankfile) ==
        "rank 0=localhost slot=1-3\n");
}

TEST_CASE("a plan as a table") {
  CHECK(printed("table") ==
        "a <small> node: 4 cores in 8 CPUs, 2 NUMA nodes, 2 L3s, 2 GPUs, 1 NIC\n"
        "\n"
        "rank  CPUs  cores  NUMA  GPU               NIC\n"
        "0     2-3   2      1     0 (0000:c0:00.0)  hsn0\n"
        "1     0-1   2      0     1 (0000:c1:00.0)  hsn0\n");
}

TEST_CASE("a plan with a sentence for each rank") {
  const Topology node = small_node();
  CHECK_THAT(format_binding(node, plan_of(node), BindingFormat::kExplanation),
             Catch::Contains("rank 0: CPUs 2-3 and hsn0: GPU 0 (0000:c0:00.0) is near CPUs 2-3,6-7.\n"));
}

TEST_CASE("a plan as JSON") {
  const auto json = nlohmann::json::parse(printed("json"));
  CHECK(json.at("kind") == "binding");
  REQUIRE(json.at("ranks").size() == 2);
  const auto& rank = json.at("ranks").at(0);
  CHECK(rank.at("cpus") == "2-3");
  CHECK(rank.at("mask") == "0xc");
  CHECK(rank.at("gpus").at(0).at("bus_id") == "0000:c0:00.0");
  CHECK(rank.at("nics") == nlohmann::json{"hsn0"});
  CHECK(rank.at("numa_nodes") == std::vector<int>{1});
}

TEST_CASE("a node as text, with its ranks") {
  const Topology node = small_node();
  CHECK(format_topology(node, plan_of(node), TopologyFormat::kText) ==
        "a <small> node: 4 cores in 8 CPUs, 2 NUMA nodes, 2 L3s, 2 GPUs, 1 NIC\n"
        "  NUMA node 0, 69 GB\n"
        "    L3\n"
        "      2 cores with CPUs 0-1,4-5  rank 1\n"
        "    GPU 1 (0000:c1:00.0)  rank 1\n"
        "  NUMA node 1, 69 GB\n"
        "    L3\n"
        "      2 cores with CPUs 2-3,6-7  rank 0\n"
        "    GPU 0 (0000:c0:00.0)  rank 0\n"
        "    NIC hsn0  ranks 0-1\n");
}

TEST_CASE("a node as JSON can be read back") {
  const Topology node = small_node();
  const auto json = nlohmann::json::parse(format_topology(node, {}, TopologyFormat::kJson));
  CHECK(json.at("kind") == "topology");
  CHECK(json.at("cores").size() == 4);
  CHECK(json.at("gpus").at(0).at("bus_id") == "0000:c0:00.0");
}

TEST_CASE("a picture has a cell for each core and a chip for each device, and all text is escaped") {
  const Topology node = small_node();
  const std::string svg = printed("svg");
  CHECK(count_of(svg, "<g><title>CPUs ") == 4);
  CHECK(count_of(svg, "GPU ") == 2);
  CHECK(count_of(svg, "hsn0") == 1);
  CHECK(count_of(svg, "<small>") == 0);
  CHECK(count_of(svg, "a &lt;small&gt; node") == 2);
  CHECK(count_of(svg, "<g>") == count_of(svg, "</g>"));
  CHECK(svg == format_topology(node, plan_of(node), TopologyFormat::kSvg));
}

TEST_CASE("performance and efficiency cores are told apart in text and picture") {
  Topology node = small_node();
  node.core_kinds = {{"P", node.cores[0].cpus | node.cores[2].cpus},
                     {"E", node.cores[1].cpus | node.cores[3].cpus}};
  for (int core : {1, 3}) node.cores[core].kind = 1;
  const std::string text = format_topology(node, {}, TopologyFormat::kText);
  CHECK_THAT(text, Catch::Contains("4 cores (2 P, 2 E) in 8 CPUs") &&
                       Catch::Contains("1 P core with CPUs 0,4\n") &&
                       Catch::Contains("1 E core with CPUs 3,7\n"));
  const std::string picture = format_topology(node, {}, TopologyFormat::kSvg);
  CHECK_THAT(picture, Catch::Contains("CPUs 1,5, kind E") && Catch::Contains(">E 1<") &&
                          Catch::Contains(">core of a slower kind;"));
  CHECK(nlohmann::json::parse(format_topology(node, {}, TopologyFormat::kJson)).at("core_kinds").size() == 2);
  CHECK_THAT(format_binding(node, plan_of(node), BindingFormat::kTable), Catch::Contains("2 (1 P, 1 E)"));
}

TEST_CASE("numbers of packages and of ranks may be larger than any CPU's") {
  Topology node = Model{2, 1, 1, 2, 1, false}.topology();
  node.packages[0].os_index = 3000;
  node.packages[1].os_index = 2000000000;
  // A NUMA node that both packages share.
  node.numa_nodes.pop_back();
  node.numa_nodes[0].complete = node.numa_nodes[0].cpus = node.complete;
  for (Core& core : node.cores) core.numa = 0;
  BindingPolicy policy;
  policy.bind_to = BindTo::kCore;
  policy.oversubscribe = true;
  const auto plan = plan_binding(node, policy, 70000);
  REQUIRE(plan);
  CHECK_THAT(format_topology(node, *plan, TopologyFormat::kText),
             Catch::Contains("packages 3000,2000000000") && Catch::Contains("ranks 52500-69999"));
  CHECK_THAT(format_topology(node, *plan, TopologyFormat::kSvg), Catch::Contains("rank 0-17499"));
}

TEST_CASE("GPUs of several vendors are listed with their vendor") {
  Topology node = small_node();
  node.gpus[0].vendor = GpuVendor::kNvidia;
  node.gpus[1].vendor = GpuVendor::kAmd;
  const std::string text = format_topology(node, {}, TopologyFormat::kText);
  CHECK_THAT(text, Catch::Contains("nvidia GPU 0") && Catch::Contains("amd GPU 1") &&
                       Catch::Contains("warning: the node has GPUs of nvidia and amd"));
}
