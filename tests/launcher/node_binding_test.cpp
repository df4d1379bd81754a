// Ranks are bound node by node, by the facts of each agent.
#include "launcher/plan/node_binding.h"

#include "affinity/output/binding_format.h"
#include "affinity/source/topology_source.h"
#include "base/text.h"
#include "launcher/facts.h"
#include "launcher/plan/launch_plan.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::affinity;
using namespace ddl::launcher;
using namespace ddl::launcher::test;

namespace {

Topology node_of(const std::string& synthetic, int gpus = 0, GpuVendor vendor = GpuVendor::kAmd) {
  auto node = hwloc_synthetic(synthetic)->load();
  REQUIRE(node);
  for (int index = 0; index < gpus; ++index) {
    Gpu gpu;
    gpu.index = index;
    gpu.vendor = vendor;
    gpu.bus_id = "0000:0" + std::to_string(index) + ":00.0";
    gpu.numa = gpus - 1 - index;  // in reverse order
    gpu.complete_local_cpus = node->numa_nodes[static_cast<std::size_t>(gpu.numa)].complete;
    gpu.local_cpus = gpu.complete_local_cpus;
    node->gpus.push_back(gpu);
  }
  return *node;
}

struct Job {
  JobSpec spec;
  Placement placement;
  std::vector<NodeFacts> facts;

  Job(int ranks, const std::vector<Topology>& nodes) : spec(job_of(ranks)) {
    const std::vector<int> slots(nodes.size(), 4);
    placement = *place(spec, allocation_of(nodes.size()), slots);
    facts = facts_of(placement, 4);
    for (std::size_t i = 0; i < facts.size(); ++i) facts[i].topology = nodes[i];
  }
  std::vector<NodeBinding> bound(const Environment& head = {}) const {
    auto bindings = bind_nodes(spec, placement, facts, head);
    REQUIRE(bindings);
    return *std::move(bindings);
  }
  LaunchPlan plan(const Environment& head = {}) const {
    return make_launch_plan(spec, {placement, facts, "ddlrun-1-2", bound(head), no_scheduler()}, head);
  }
  std::string refusal() const {
    const auto bindings = bind_nodes(spec, placement, facts, {});
    return bindings ? "bound" : bindings.error().message();
  }
};

const char* const kFour = "pack:1 numa:2 l3:1 core:2 pu:1";

}  // namespace

TEST_CASE("nodes that differ are planned separately") {
  const Job job(8, {node_of(kFour), node_of("pack:1 numa:4 l3:1 core:8 pu:2")});
  const auto bindings = job.bound();
  REQUIRE(bindings.size() == 2);
  CHECK(as_map_cpu(bindings[0].plan) == "map_cpu:0,1,2,3");
  CHECK(as_map_cpu(bindings[1].plan) == "map_cpu:0,16,32,48");
  const LaunchPlan plan = job.plan();
  CHECK(plan.nodes[1].ranks[1].cpus.list() == "16,18,20,22,24,26,28,30");
  CHECK(plan.nodes[1].ranks[1].memory_nodes == std::vector{1});
  CHECK(plan.nodes[1].ranks[1].environment.at("OMP_NUM_THREADS") == "8");
  CHECK(plan.nodes[1].ranks[1].environment.at("OMP_PLACES") == "{16,18,20,22,24,26,28,30}");
  CHECK(plan.nodes[1].ranks[1].environment.at("OMP_PROC_BIND") == "true");
}

TEST_CASE("settings of the user for threads are kept") {
  const Job job(4, {node_of(kFour)});
  for (const char* name : {"OMP_PLACES", "OMP_PROC_BIND", "KMP_AFFINITY", "GOMP_CPU_AFFINITY"}) {
    const LaunchPlan plan = job.plan({{name, "mine"}, {"OMP_NUM_THREADS", "3"}});
    const Environment& own = plan.nodes[0].ranks[0].environment;
    CHECK(inherited(plan, 0).at(name) == "mine");
    CHECK_FALSE(own.contains("OMP_PLACES"));
    CHECK_FALSE(own.contains("OMP_PROC_BIND"));
    CHECK_FALSE(own.contains("OMP_NUM_THREADS"));
  }
}

TEST_CASE("a rank sees its own GPUs by exactly one variable") {
  const GpuVendor vendor = GENERATE(GpuVendor::kNvidia, GpuVendor::kAmd, GpuVendor::kIntel);
  Job job(2, {node_of(kFour, 2, vendor)});
  job.spec.gpu_view = GpuView::kOwn;
  const LaunchPlan plan = job.plan();
  const Environment& second = plan.nodes[0].ranks[1].environment;
  std::vector<std::string> set;
  for (const auto& [name, value] : second) {
    if (name.find("VISIBLE") != std::string::npos || name == "ZE_AFFINITY_MASK")
      set.push_back(name + "=" + value);
  }
  const char* const wanted = vendor == GpuVendor::kNvidia ? "CUDA_VISIBLE_DEVICES=1"
                             : vendor == GpuVendor::kAmd  ? "ROCR_VISIBLE_DEVICES=1"
                                                          : "ZE_AFFINITY_MASK=1";
  CHECK(set == std::vector<std::string>{wanted});
  CHECK(second.contains("CUDA_DEVICE_ORDER") == (vendor == GpuVendor::kNvidia));
  CHECK(plan.nodes[0].ranks[0].cpus.list() == "2-3");
  CHECK(plan.nodes[0].ranks[1].cpus.list() == "0-1");
}

TEST_CASE(
    "programs that choose a GPU by their local rank see those of all ranks of the node, in this order") {
  using enum Framework;
  Job job(3, {node_of("pack:1 numa:4 l3:1 core:2 pu:1", 4)});
  job.spec.binding.rank_order = RankOrder::kCpu;
  const auto seen = [&job](Framework framework, GpuView view = GpuView::kByFramework) {
    job.spec.framework = framework;
    job.spec.gpu_view = view;
    std::vector<std::string> values;
    const LaunchPlan plan = job.plan();
    for (const RankLaunch& rank : plan.nodes[0].ranks)
      values.push_back(rank.environment.at("ROCR_VISIBLE_DEVICES"));
    return values;
  };
  const auto own = seen(kAuto, GpuView::kOwn);
  const std::vector<std::string> all(3, ddl::join(own, ","));
  CHECK(own.front() > own.back());  // the numbers of GPUs descend here
  for (const Framework framework : {kAuto, kTorch, kHorovod, kDeepspeed, kJax}) CHECK(seen(framework) == all);
  for (const Framework framework : {kTensorflow, kMpi, kNone}) {
    CHECK(seen(framework) == own);
    CHECK(seen(framework, GpuView::kNode) == all);
  }
}

TEST_CASE("a rank sees its own GPUs alone if they are several, or another's, too") {
  Job two(2, {node_of("pack:1 numa:4 l3:1 core:2 pu:1", 4)});
  two.spec.binding.gpus_per_rank = 2;
  CHECK(two.plan().nodes[0].ranks[1].environment.at("ROCR_VISIBLE_DEVICES") == "2,3");
  Job shared(4, {node_of("pack:1 numa:4 l3:1 core:2 pu:1", 2)});
  CHECK(shared.plan().nodes[0].ranks[3].environment.at("ROCR_VISIBLE_DEVICES") == "1");
  // The variable of Intel's GPUs does not order them.
  Job intel(2, {node_of("pack:1 numa:2 l3:1 core:2 pu:1", 2, GpuVendor::kIntel)});
  CHECK(intel.plan().nodes[0].ranks[1].environment.at("ZE_AFFINITY_MASK") == "0,1");
  intel.spec.binding.rank_order = RankOrder::kCpu;
  CHECK(intel.plan().nodes[0].ranks[1].environment.at("ZE_AFFINITY_MASK") == "0");
}

TEST_CASE("ranks that take no slots are not bound") {
  Job job(2, {node_of(kFour)});
  job.spec.roles = mxnet_roles(2, 2);
  job.spec.num_ranks = num_ranks_of(job.spec.roles);
  job.placement = *place(job.spec, allocation_of(1), {4});
  job.facts = facts_of(job.placement, 4);
  job.facts[0].topology = node_of(kFour);
  const LaunchPlan plan = job.plan();
  CHECK(plan.nodes[0].ranks[1].cpus.list() == "2-3");
  for (const std::size_t rank : {2, 3, 4}) CHECK(plan.nodes[0].ranks[rank].cpus.is_empty());
}

TEST_CASE("a rank gets the names of the adapters near its GPUs, unless the user has named others") {
  Topology node = node_of(kFour, 2);
  for (const char* name : {"hsn0", "hsn1"}) {
    Nic nic;
    nic.name = name;
    nic.numa = static_cast<int>(node.nics.size());
    nic.local_cpus = node.numa_nodes[node.nics.size()].complete;
    node.nics.push_back(nic);
  }
  Job job(2, {node});
  CHECK(job.plan().nodes[0].ranks[0].environment.at("DDL_NEAR_NICS") == "hsn1");
  CHECK(job.plan().nodes[0].ranks[1].environment.at("DDL_NEAR_NICS") == "hsn0");
  CHECK_FALSE(job.plan({{"DDL_NEAR_NICS", "mine"}}).nodes[0].ranks[0].environment.contains("DDL_NEAR_NICS"));
  job = Job(1, {node});
  job.spec.binding.gpus_per_rank = 2;
  CHECK(job.plan().nodes[0].ranks[0].environment.at("DDL_NEAR_NICS") == "hsn1,hsn0");
}

TEST_CASE("only the GPUs that the user has left visible are assigned, by the user's own variable") {
  Job job(2, {node_of("pack:1 numa:4 l3:1 core:2 pu:1", 4)});
  job.spec.gpu_view = GpuView::kOwn;
  const auto devices = [&](const Environment& head, const char* name) {
    const LaunchPlan plan = job.plan(head);
    std::string text;
    for (const RankLaunch& rank : plan.nodes[0].ranks) text += rank.environment.at(name) + " ";
    return text;
  };
  CHECK(devices({{"ROCR_VISIBLE_DEVICES", "3,1"}}, "ROCR_VISIBLE_DEVICES") == "3 1 ");
  CHECK(devices({{"HIP_VISIBLE_DEVICES", "2,0"}}, "HIP_VISIBLE_DEVICES") == "2 0 ");
  const LaunchPlan plan = job.plan({{"HIP_VISIBLE_DEVICES", "2,0"}});
  CHECK_FALSE(plan.nodes[0].ranks[0].environment.contains("ROCR_VISIBLE_DEVICES"));
  // No GPU is visible: ranks are bound by CPU, and see none.
  const LaunchPlan none = job.plan({{"ROCR_VISIBLE_DEVICES", ""}});
  CHECK_FALSE(none.nodes[0].ranks[0].environment.contains("ROCR_VISIBLE_DEVICES"));
  CHECK(inherited(none, 0).at("ROCR_VISIBLE_DEVICES").empty());
}

TEST_CASE("a binding that is not possible is omitted with a reason, or an error if it was asked for") {
  Job job(4, {node_of("pack:1 core:2 pu:1")});
  CHECK(job.bound()[0].plan.ranks.empty());
  CHECK_THAT(job.bound()[0].unbound_because, Catch::Contains("2 usable cores for 4 ranks"));
  CHECK(job.plan().nodes[0].ranks[0].cpus.is_empty());
  job.spec.binding.bind_to = BindTo::kCore;
  CHECK_THAT(job.refusal(), Catch::Contains("node0") && Catch::Contains("2 usable cores for 4 ranks"));
  job.facts[0].topology = {};
  job.facts[0].topology_failure = "no /sys here";
  CHECK_THAT(job.refusal(), Catch::Contains("topology is not known: no /sys here"));
  job.spec.binding.bind_to = BindTo::kNone;
  CHECK(job.bound()[0].plan.ranks.empty());
}
