// A node from a few numbers.
#include "affinity/source/node_model.h"

#include "support/catch.h"

using ddl::CpuSet;
using namespace ddl::affinity;

namespace {

Topology topology_of(const NodeModel& model) {
  auto topology = topology_of_model(model, "model");
  INFO((topology ? std::string() : topology.error().message()));
  REQUIRE(topology);
  CHECK(is_consistent(*topology));
  return *std::move(topology);
}

}  // namespace

TEST_CASE("packages, NUMA nodes, L3s and cores are numbered in order, threads across or adjacent") {
  NodeModel model;
  model.packages = 2;
  model.numa_per_package = 2;
  model.l3s_per_numa = 2;
  model.cores_per_l3 = 3;
  model.threads_per_core = 2;
  const Topology across = topology_of(model);
  CHECK(across.cores.size() == 24);
  CHECK(across.complete.list() == "0-47");
  CHECK(across.packages[1].cpus.list() == "12-23,36-47");
  CHECK(across.numa_nodes[1].cpus.list() == "6-11,30-35");
  CHECK(across.l3s[7].cpus.list() == "21-23,45-47");
  CHECK(across.cores[13].cpus.list() == "13,37");
  CHECK(across.cores[13].package == 1);
  CHECK(across.cores[13].numa == 2);
  CHECK(across.cores[13].l3 == 4);

  model.threads = NodeModel::Threads::kAdjacent;
  model.threads_per_core = 4;
  const Topology adjacent = topology_of(model);
  CHECK(adjacent.cores[13].cpus.list() == "52-55");
  CHECK(adjacent.packages[1].cpus.list() == "48-95");
}

TEST_CASE("reserved cores are the machine's and not the job's") {
  NodeModel model;
  model.l3s_per_numa = 2;
  model.cores_per_l3 = 4;
  model.threads_per_core = 2;
  model.reserved.first_core_per_l3 = true;
  const Topology node = topology_of(model);
  CHECK(node.allowed.list() == "1-3,5-7,9-11,13-15");
  CHECK(node.complete.list() == "0-15");
  CHECK(node.l3s[1].cpus.list() == "5-7,13-15");
  CHECK(node.l3s[1].complete.list() == "4-7,12-15");
  CHECK(node.cores.size() == 6);
  // A list takes the other threads of its cores, too.
  model.reserved = {false, CpuSet::of({9})};
  CHECK(topology_of(model).allowed.list() == "0,2-8,10-15");
}

TEST_CASE("devices are listed at their NUMA nodes") {
  NodeModel model;
  model.numa_per_package = 2;
  model.cores_per_l3 = 2;
  model.gpu_vendor = GpuVendor::kAmd;
  model.gpu_numa = {1, 0};
  model.nics = {{"hsn0", 1}};
  const Topology node = topology_of(model);
  CHECK(node.gpus[0].local_cpus.list() == "2-3");
  CHECK(node.gpus[1].numa == 0);
  CHECK(node.gpus[1].index == 1);
  CHECK(node.gpus[1].vendor == GpuVendor::kAmd);
  CHECK(node.nics[0].numa == 1);
}
