// What binding planners get wrong.
#include "affinity/output/binding_format.h"
#include "affinity/plan/binding_plan.h"
#include "affinity/source/pci_devices.h"
#include "affinity/support/model.h"
#include "affinity/support/planned.h"
#include "base/text.h"
#include "support/catch.h"

using ddl::CpuSet;
using namespace ddl::affinity;
using namespace ddl::affinity::test;

namespace {

Nic nic_at(const char* name, const Topology& node, int numa, const char* pci_switch = "") {
  Nic nic;
  nic.name = name;
  nic.numa = numa;
  nic.pci_switch = pci_switch;
  if (numa >= 0) nic.local_cpus = node.numa_nodes[static_cast<std::size_t>(numa)].complete;
  return nic;
}

}  // namespace

TEST_CASE("a second hardware thread of each core changes no first CPU") {
  for (const BindTo kind : {BindTo::kAuto, BindTo::kNuma, BindTo::kL3, BindTo::kCore}) {
    BindingPolicy policy;
    policy.bind_to = kind;
    Topology with = Model{2, 2, 2, 4, 2, true}.topology(), without = Model{2, 2, 2, 4, 1, true}.topology();
    CHECK(as_map_cpu(planned(with, policy, 8)) == as_map_cpu(planned(without, policy, 8)));
    add_gpus_on_numa(with, {1, 0, 3, 2});
    add_gpus_on_numa(without, {1, 0, 3, 2});
    CHECK(as_map_cpu(planned(with, policy, 4)) == as_map_cpu(planned(without, policy, 4)));
  }
}

TEST_CASE("several devices on one bus id split its cores") {
  // As an MI300A in a partitioned mode, or MIG instances.
  Topology node = Model{2, 1, 1, 8, 1, true}.topology();
  add_gpus_on_numa(node, {0, 0, 0, 1});
  for (std::size_t i = 0; i < 3; ++i) node.gpus[i].bus_id = "0000:c1:00.0";
  const BindingPlan plan = planned(node, {}, 4);
  CHECK(as_map_cpu(plan) == "map_cpu:0,3,6,8");
  CHECK(plan.ranks[0].cpus.list() == "0-2");
  CHECK(plan.ranks[2].cpus.list() == "6-7");
  CHECK(plan.ranks[2].gpus.front().index == 2);
}

TEST_CASE("a NIC is chosen by PCI switch, then NUMA node, then package") {
  Topology node = Model{2, 2, 1, 4, 1, true}.topology();
  add_gpus_on_numa(node, {0, 0, 1, 3});
  node.gpus[0].pci_switch = "0000:40:00.0";
  node.gpus[1].pci_switch = "0000:60:00.0";
  node.nics = {nic_at("mlx5_0", node, 0, "0000:60:00.0"), nic_at("mlx5_1", node, 0, "0000:40:00.0"),
               nic_at("mlx5_2", node, 2)};
  std::string nics;
  for (const RankBinding& rank : planned(node, {}, 4).ranks) nics += ddl::join(rank.nics, ",") + " ";
  // The third has none on its NUMA node, and two in its package: the first of those. The fourth has one in its
  // package.
  CHECK(nics == "mlx5_1 mlx5_0 mlx5_0 mlx5_2 ");
  node.nics = {nic_at("eth0", node, -1)};
  CHECK(planned(node, {}, 4).ranks[0].nics.empty());
}

TEST_CASE("only devices that compute count as GPUs") {
  CHECK(gpu_vendor_of({0x10de, 0x20b0, 0x0302}) == GpuVendor::kNvidia);
  CHECK(gpu_vendor_of({0x10de, 0x1db6, 0x0300}) == GpuVendor::kNvidia);
  CHECK(gpu_vendor_of({0x1002, 0x7408, 0x0380}) == GpuVendor::kAmd);
  CHECK(gpu_vendor_of({0x1002, 0x74a0, 0x1200}) == GpuVendor::kAmd);
  CHECK(gpu_vendor_of({0x8086, 0x0bd5, 0x0380}) == GpuVendor::kIntel);
  CHECK_FALSE(gpu_vendor_of({0x1a03, 0x2000, 0x0300}));  // a BMC's console
  CHECK_FALSE(gpu_vendor_of({0x102b, 0x0536, 0x0300}));
  CHECK_FALSE(gpu_vendor_of({0x8086, 0x3e9b, 0x0300}));  // a desktop processor's own
  CHECK_FALSE(gpu_vendor_of({0x10ee, 0x500c, 0x1200}));  // an FPGA
  CHECK_FALSE(gpu_vendor_of({0x10de, 0x1aef, 0x0403}));  // a graphics card's sound
  CHECK(is_nic({0x15b3, 0x101b, 0x0207}));
  CHECK(is_nic({0x17db, 0x0501, 0x0200}));
  CHECK_FALSE(is_nic({0x144d, 0xa824, 0x0108}));
}

TEST_CASE("numbers of NUMA nodes, packages and CPUs have gaps") {
  // Two nodes called 0 and 8, as on POWER; CPUs 2 and 3 are offline, and cores have four threads each of which one is
  // left.
  Topology node;
  node.source = "a POWER node";
  node.complete = CpuSet::range(0, 63);
  for (const int number : {0, 8}) {
    const int first = number * 4;
    const CpuSet all = CpuSet::range(first, first + 31);
    node.packages.push_back({number, all, all});
    node.numa_nodes.push_back({number, all, all, 0});
    const int position = static_cast<int>(node.packages.size()) - 1;
    for (int core = 0; core < 8; ++core) {
      CpuSet cpus = CpuSet::range(first + 4 * core, first + 4 * core + 3);
      cpus.remove(2);
      cpus.remove(3);
      node.allowed |= cpus;
      node.cores.push_back({cpus, position, position, -1});
    }
  }
  REQUIRE(is_consistent(node));
  add_gpus_on_numa(node, {1, 0});
  const BindingPlan plan = planned(node, {}, 2);
  CHECK(as_map_cpu(plan) == "map_cpu:32,0");
  CHECK(plan.ranks[0].numa_nodes == std::vector{8});
  BindingPolicy threads;
  threads.smt = true;
  CHECK(planned(node, threads, 2).ranks[1].cpus.list() == "0-1,4-31");
}

TEST_CASE("the order of GPUs is that of their numbers, not of their bus ids") {
  Topology node = Model{1, 2, 1, 4, 1, true}.topology();
  add_gpus_on_numa(node, {0, 1});
  std::swap(node.gpus[0].bus_id, node.gpus[1].bus_id);
  const BindingPlan plan = planned(node, {}, 2);
  CHECK(plan.ranks[0].gpus.front().index == 0);
  CHECK(plan.ranks[0].gpus.front().bus_id == "0000:c1:00.0");
  CHECK(as_map_cpu(plan) == "map_cpu:0,4");
}
