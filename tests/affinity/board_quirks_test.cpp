// Localities of GPUs that are known only from a table.
#include "affinity/source/pci_devices.h"

#include "affinity/source/node_model.h"
#include "support/catch.h"

using namespace ddl::affinity;

namespace {

/// As sysfs reports it: by NUMA node.
Topology ex235a_board() {
  NodeModel model;
  model.board = "HPE CRAY EX235A";
  model.numa_per_package = 4;
  model.l3s_per_numa = 2;
  model.cores_per_l3 = 8;
  model.threads_per_core = 2;
  model.gpu_vendor = GpuVendor::kAmd;
  model.gpu_numa = {3, 3, 1, 1, 0, 0, 2, 2};
  auto topology = topology_of_model(model, "model");
  REQUIRE(topology);
  const std::vector<std::string> buses = {"c1", "c6", "c9", "ce", "d1", "d6", "d9", "de"};
  for (std::size_t i = 0; i < buses.size(); ++i) topology->gpus[i].bus_id = "0000:" + buses[i] + ":00.0";
  return *std::move(topology);
}

}  // namespace

TEST_CASE("each GCD of an EX235A is wired to one chiplet") {
  Topology node = ex235a_board();
  apply_board_quirks(node);
  std::vector<int> first;
  for (const Gpu& gpu : node.gpus) {
    CHECK(gpu.local_cpus.count() == 16);
    CHECK(gpu.locality_from == "table of boards");
    first.push_back(gpu.local_cpus.first());
  }
  CHECK(first == std::vector<int>{48, 56, 16, 24, 0, 8, 32, 40});
}

TEST_CASE("another board, another bus, and a place that the table contradicts are not changed") {
  Topology other = ex235a_board();
  other.board = "HPE CRAY EX254N";
  const Topology before = other;
  apply_board_quirks(other);
  CHECK(other == before);

  Topology moved = ex235a_board();
  moved.gpus[0].bus_id = "0000:aa:00.0";
  moved.gpus[1].complete_local_cpus = moved.numa_nodes[0].complete;  // the table says NUMA node 3
  apply_board_quirks(moved);
  CHECK(moved.gpus[0].local_cpus.count() == 32);
  CHECK(moved.gpus[1].complete_local_cpus == moved.numa_nodes[0].complete);
  CHECK(moved.gpus[2].local_cpus.count() == 16);
}

TEST_CASE("what hwloc has narrowed already is not touched") {
  Topology node = ex235a_board();
  apply_board_quirks(node);
  const Topology narrow = node;
  apply_board_quirks(node);
  CHECK(node == narrow);
}
