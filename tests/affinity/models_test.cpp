// Plans of the models in tests/topologies, as the sites of these nodes publish them, all the way from hwloc's XML.
#include "affinity/output/binding_format.h"
#include "affinity/plan/binding_plan.h"
#include "affinity/source/topology_source.h"
#include "affinity/support/planned.h"
#include "base/text.h"
#include "support/catch.h"

using namespace ddl::affinity;
using ddl::affinity::test::planned;

namespace {

struct Answer {
  const char* model;
  int ranks;
  const char* map_cpu;
  const char* nics;
};
constexpr Answer kAnswers[] = {
    {"ex235a", 8, "48,56,16,24,0,8,32,40", "hsn0 hsn0 hsn1 hsn1 hsn2 hsn2 hsn3 hsn3 "},
    {"juwels-booster", 4, "18,6,42,30", "mlx5_0 mlx5_1 mlx5_2 mlx5_3 "},
    {"grace-hopper-4", 4, "0,72,144,216", "hsn0 hsn1 hsn2 hsn3 "},
    {"dgx-a100", 8, "48,56,16,24,112,120,80,88", "mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7 "},
    {"mi300a-4", 4, "0,24,48,72", "    "},
    {"marenostrum5", 4, "0,20,40,60", "mlx5_0 mlx5_0 mlx5_1 mlx5_1 "},
};

Topology model(const std::string& name) {
  auto node = hwloc_xml(std::string(DDL_TEST_TOPOLOGIES) + "/" + name + ".xml")->load();
  INFO((node ? std::string() : node.error().message()));
  REQUIRE(node);
  CHECK(is_consistent(*node));
  return *std::move(node);
}

}  // namespace

TEST_CASE("a rank for each GPU starts where the site publishes it, beside its NIC") {
  for (const Answer& answer : kAnswers) {
    CAPTURE(answer.model);
    const Topology node = model(answer.model);
    CHECK(node.gpus.size() == static_cast<std::size_t>(answer.ranks));
    const BindingPlan plan = planned(node, {}, answer.ranks);
    CHECK(as_map_cpu(plan) == std::string("map_cpu:") + answer.map_cpu);
    std::string nics;
    for (const RankBinding& rank : plan.ranks) nics += ddl::join(rank.nics, ",") + " ";
    CHECK(nics == answer.nics);
    CHECK(plan.warnings.empty());
  }
}

TEST_CASE("LUMI-G's masks with a core of every L3 left to the system") {
  const Topology node = model("ex235a");
  CHECK(node.board == "HPE CRAY EX235A");
  BindingPolicy policy;
  policy.reserved.first_core_per_l3 = true;
  CHECK(as_mask_cpu(planned(node, policy, 8)) ==
        "mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,"
        "0xfe0000000000");
  policy.cores_per_rank = 6;
  CHECK(as_mask_cpu(planned(node, policy, 8)) ==
        "mask_cpu:0x7e000000000000,0x7e00000000000000,0x7e0000,0x7e000000,0x7e,0x7e00,0x7e00000000,"
        "0x7e0000000000");
}

TEST_CASE("no rank runs on a NUMA node without CPUs") {
  const Topology node = model("grace-hopper-4");
  CHECK(node.numa_nodes.size() == 8);
  BindingPolicy policy;
  policy.bind_to = BindTo::kNuma;
  CHECK(as_map_cpu(planned(node, policy, 4)) == "map_cpu:0,72,144,216");
  for (const RankBinding& rank : planned(node, policy, 4).ranks) CHECK(rank.numa_nodes.size() == 1);
}
