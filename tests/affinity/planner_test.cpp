// Plans of models of real nodes, compared with those that their sites publish, and plans of generated nodes.
#include "affinity/plan/binding_plan.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "affinity/output/binding_format.h"
#include "affinity/support/model.h"
#include "affinity/support/planned.h"
#include "base/text.h"
#include "support/catch.h"

using ddl::CpuSet;
using namespace ddl::affinity;
using namespace ddl::affinity::test;

namespace {

std::string refusal(const Topology& topology, const BindingPolicy& policy, int ranks) {
  const auto plan = plan_binding(topology, policy, ranks);
  return plan ? "planned" : plan.error().message();
}

BindingPolicy reserving() {
  BindingPolicy policy;
  policy.reserved.first_core_per_l3 = true;
  return policy;
}

/// Of the eight GCDs of LUMI-G in index order: the L3 of each.
const std::vector<int> kLumiL3s{6, 7, 2, 3, 0, 1, 4, 5};
const std::vector<int> kLumiNuma{3, 3, 1, 1, 0, 0, 2, 2};

Topology lumi(const CpuSet& allowed = {}) {
  Topology topology = ex235a().topology(allowed);
  add_gpus_on_l3(topology, kLumiL3s);
  return topology;
}

/// The same, of which only the NUMA nodes of the GPUs are known.
Topology lumi_by_numa(const CpuSet& allowed = {}) {
  Topology topology = ex235a().topology(allowed);
  add_gpus_on_numa(topology, kLumiNuma);
  return topology;
}

CpuSet all_but_first_of_l3s() {
  CpuSet cpus = CpuSet::range(0, 127);
  for (int cpu = 0; cpu < 128; cpu += 8) cpus.remove(cpu);
  return cpus;
}

}  // namespace

TEST_CASE("ranks of LUMI-G are bound as the site publishes") {
  const bool by_numa = GENERATE(false, true);
  CAPTURE(by_numa);
  const auto node = [&](const CpuSet& allowed = {}) {
    return by_numa ? lumi_by_numa(allowed) : lumi(allowed);
  };
  const std::string map = "map_cpu:49,57,17,25,1,9,33,41";
  const BindingPlan plan = planned(node(), reserving(), 8);
  CHECK(as_map_cpu(plan) == map);
  CHECK(as_mask_cpu(plan) ==
        "mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,"
        "0xfe0000000000");

  BindingPolicy six = reserving();
  six.cores_per_rank = 6;
  CHECK(as_mask_cpu(planned(node(), six, 8)) ==
        "mask_cpu:0x7e000000000000,0x7e00000000000000,0x7e0000,0x7e000000,0x7e,0x7e00,0x7e00000000,"
        "0x7e0000000000");

  BindingPolicy by_cpu = reserving();
  by_cpu.rank_order = RankOrder::kCpu;
  const BindingPlan ascending = planned(node(), by_cpu, 8);
  CHECK(as_map_cpu(ascending) == "map_cpu:1,9,17,25,33,41,49,57");
  std::vector<int> gpus;
  for (const RankBinding& rank : ascending.ranks) gpus.push_back(rank.gpus.front().index);
  CHECK(gpus == std::vector{4, 5, 2, 3, 6, 7, 0, 1});

  CHECK(as_map_cpu(planned(node(), {}, 8)) == "map_cpu:48,56,16,24,0,8,32,40");

  // Reserved cores that a cgroup has taken already are not taken twice.
  CHECK(as_map_cpu(planned(node(all_but_first_of_l3s()), reserving(), 8)) == map);
  CHECK(as_map_cpu(planned(node(all_but_first_of_l3s()), {}, 8)) == map);
}

TEST_CASE("two ranks for each GPU have cores of their own") {
  BindingPolicy policy = reserving();
  policy.cores_per_rank = 3;
  const BindingPlan plan = planned(lumi(), policy, 16);
  const int shifts[] = {48, 56, 16, 24, 0, 8, 32, 40};
  for (std::size_t gpu = 0; gpu < 8; ++gpu) {
    CHECK(plan.ranks[2 * gpu].cpus == CpuSet::range(shifts[gpu] + 1, shifts[gpu] + 3));
    CHECK(plan.ranks[2 * gpu + 1].cpus == CpuSet::range(shifts[gpu] + 5, shifts[gpu] + 7));
    CHECK(plan.ranks[2 * gpu].gpus == plan.ranks[2 * gpu + 1].gpus);
  }
}

TEST_CASE("ranks on nodes of other sites start where these publish it") {
  SECTION("JUWELS Booster") {
    Model model{2, 4, 1, 6, 2, true};
    Topology node = model.topology();
    add_gpus_on_numa(node, {3, 1, 7, 5});
    CHECK(as_map_cpu(planned(node, {}, 4)) == "map_cpu:18,6,42,30");
  }
  SECTION("four Grace-Hoppers, whose GPUs' memory is NUMA nodes without CPUs") {
    Model model{4, 1, 1, 72, 1, true};
    Topology node = model.topology();
    add_gpus_on_numa(node, {0, 1, 2, 3});
    for (int gpu = 0; gpu < 4; ++gpu)
      node.numa_nodes.push_back({4 + 8 * gpu, {}, {}, std::uint64_t{96} << 30});
    CHECK(as_map_cpu(planned(node, {}, 4)) == "map_cpu:0,72,144,216");
    BindingPolicy numa;
    numa.bind_to = BindTo::kNuma;
    CHECK(as_map_cpu(planned(node, numa, 4)) == "map_cpu:0,72,144,216");
  }
  SECTION("DGX A100") {
    Model model{2, 4, 4, 4, 2, true};
    Topology node = model.topology();
    add_gpus_on_numa(node, {3, 3, 1, 1, 7, 7, 5, 5});
    CHECK(as_map_cpu(planned(node, {}, 8)) == "map_cpu:48,56,16,24,112,120,80,88");
  }
  SECTION("MareNostrum 5") {
    Model model{2, 1, 1, 40, 1, true};
    Topology node = model.topology();
    add_gpus_on_numa(node, {0, 0, 1, 1});
    CHECK(as_map_cpu(planned(node, {}, 4)) == "map_cpu:0,20,40,60");
  }
  SECTION("MI300A") {
    Model model{4, 1, 3, 8, 2, true};
    Topology node = model.topology();
    add_gpus_on_numa(node, {0, 1, 2, 3});
    CHECK(as_map_cpu(planned(node, {}, 4)) == "map_cpu:0,24,48,72");
  }
}

TEST_CASE("one hardware thread of a core unless more are asked for") {
  Topology node = ex235a().topology();
  BindingPolicy policy;
  policy.bind_to = BindTo::kL3;
  CHECK(planned(node, policy, 8).ranks[0].cpus == CpuSet::range(0, 7));
  policy.smt = true;
  CHECK(planned(node, policy, 8).ranks[0].cpus == (CpuSet::range(0, 7) | CpuSet::range(64, 71)));
  CHECK(planned(node, policy, 8).ranks[0].threads == 8);
}

TEST_CASE("without GPUs ranks share as little cache as possible") {
  const Topology node = ex235a().topology();
  CHECK(as_map_cpu(planned(node, {}, 1)) == "map_cpu:0");
  CHECK(planned(node, {}, 1).ranks[0].cpus.count() == 64);
  CHECK(as_map_cpu(planned(node, {}, 2)) == "map_cpu:0,32");
  CHECK(as_map_cpu(planned(node, {}, 4)) == "map_cpu:0,16,32,48");
  CHECK(as_map_cpu(planned(node, {}, 8)) == "map_cpu:0,8,16,24,32,40,48,56");
  CHECK(planned(node, {}, 16).ranks[1].cpus == CpuSet::range(4, 7));
}

TEST_CASE("with more ranks than cores each has hardware threads of its own") {
  const Topology node = Model{1, 1, 2, 4, 2, true}.topology();
  const BindTo kind = GENERATE(BindTo::kAuto, BindTo::kPu);
  BindingPolicy policy;
  policy.bind_to = kind;
  const BindingPlan full = planned(node, policy, 16);
  CHECK(as_map_cpu(full) == "map_cpu:0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15");
  for (const RankBinding& rank : full.ranks) CHECK(rank.cpus.count() == 1);
  const BindingPlan some = planned(node, policy, 12);
  CpuSet taken;
  for (const RankBinding& rank : some.ranks) {
    CHECK_FALSE(rank.cpus.is_empty());
    CHECK_FALSE(rank.cpus.intersects(taken));
    taken |= rank.cpus;
  }
  CHECK(taken == node.allowed);
  policy.bind_to = BindTo::kCore;
  CHECK_THAT(refusal(node, policy, 12), Catch::Contains("8 usable cores for 12 ranks"));
}

TEST_CASE("a GPU whose near CPUs may not be used gets others, with a warning") {
  Topology node = lumi(CpuSet::range(0, 47));
  const BindingPlan plan = planned(node, {}, 8);
  CHECK_FALSE(plan.warnings.empty());
  CpuSet taken;
  for (const RankBinding& rank : plan.ranks) {
    CHECK(rank.cpus.is_subset_of(CpuSet::range(0, 47)));
    CHECK_FALSE(rank.cpus.intersects(taken));
    taken |= rank.cpus;
  }
  // Each of the two shares with one that has its own: four cores for each of these.
  CHECK(plan.ranks[0].cpus.count() == 4);
  CHECK(plan.ranks[1].cpus.count() == 4);
}

TEST_CASE("a management network is not taken for the fabric beside it") {
  Topology node = lumi();
  const auto add_nic = [&](const char* name, int numa, double speed) {
    Nic nic;
    nic.name = name;
    nic.numa = numa;
    nic.bus_speed = speed;
    nic.local_cpus = node.numa_nodes[static_cast<std::size_t>(numa)].complete;
    node.nics.push_back(nic);
  };
  add_nic("eth0", 0, 0.25);
  add_nic("hsn0", 3, 31.5);
  add_nic("hsn1", 1, 31.5);
  add_nic("hsn2", 0, 31.5);
  add_nic("hsn3", 2, 31.5);
  std::string nics;
  for (const RankBinding& rank : planned(node, {}, 8).ranks) nics += ddl::join(rank.nics, ",") + " ";
  CHECK(nics == "hsn0 hsn0 hsn1 hsn1 hsn2 hsn2 hsn3 hsn3 ");
}

TEST_CASE("GPUs that the user has left visible are the ones that ranks get") {
  Topology node = lumi();
  node.gpus[2].uuid = "GPU-0a1b2c3d-1111";
  keep_visible(node, GpuVendor::kAmd, "5, GPU-0a1b,0,-1,1");
  const BindingPlan plan = planned(node, {}, 3);
  CHECK(as_map_cpu(plan) == "map_cpu:8,16,48");
  CHECK(plan.ranks[0].gpus.front().visible_as == "5");
  CHECK(plan.ranks[1].gpus.front().visible_as == "GPU-0a1b");
  CHECK(plan.ranks[2].gpus.front().index == 0);
  Topology parts = lumi();
  keep_visible(parts, GpuVendor::kAmd, "MIG-1,MIG-2");
  const BindingPlan apart = planned(parts, {}, 2);
  CHECK_FALSE(apart.ranks[0].cpus.intersects(apart.ranks[1].cpus));
  CHECK(apart.warnings.size() == 2);
  Topology none = lumi();
  keep_visible(none, GpuVendor::kAmd, "");
  CHECK(none.gpus.empty());
}

TEST_CASE("too few resources are refused with the number that exists") {
  const Topology node = Model{1, 1, 1, 4, 1, true}.topology();
  CHECK_THAT(refusal(node, {}, 5), Catch::Contains("4 usable cores for 5 ranks"));
  BindingPolicy policy;
  policy.bind_to = BindTo::kGpu;
  CHECK_THAT(refusal(node, policy, 1), Catch::Contains("no GPU"));
  BindingPolicy many;
  many.cores_per_rank = 3;
  CHECK_THAT(refusal(node, many, 2), Catch::Contains("--cores-per-rank 3: local rank 0 has 2"));
  BindingPolicy two;
  two.cores_per_rank = 2;
  CHECK_THAT(refusal(Model{1, 1, 1, 4, 2, true}.topology(), two, 8), Catch::Contains("--cores-per-rank 2"));
  BindingPolicy all;
  all.reserved.cpus = CpuSet::range(0, 3);
  CHECK_THAT(refusal(node, all, 1), Catch::Contains("no core is left"));
  BindingPolicy shared;
  shared.oversubscribe = true;
  const auto unbound = plan_binding(node, shared, 9);
  REQUIRE(unbound);
  CHECK(unbound->ranks.empty());
  CHECK_THAT(unbound->warnings.back(), Catch::Contains("bound to nothing"));
  shared.bind_to = BindTo::kCore;
  CHECK(planned(node, shared, 9).ranks.size() == 9);
  BindingPolicy gpus;
  gpus.gpus_per_rank = 1;
  CHECK_THAT(refusal(node, gpus, 1), Catch::Contains("no GPU"));
}

namespace {

/// Nodes of every size and shape, complete and with missing CPUs, with and without GPUs.
std::vector<Topology> all_nodes() {
  std::vector<Topology> nodes;
  for (const int packages : {1, 2}) {
    for (const int numa : {1, 2, 4}) {
      for (const int l3s : {1, 2}) {
        for (const int cores : {1, 3, 8}) {
          for (const int threads : {1, 2}) {
            const Model model{packages, numa, l3s, cores, threads, true};
            for (const bool restricted : {false, true}) {
              CpuSet allowed = model.threads_of(0, model.cores());
              for (int cpu = 0; restricted && cpu < model.cores() * threads; cpu += 3) allowed.remove(cpu);
              if (allowed.is_empty()) continue;
              for (const int gpus : {0, 1, 3, 4}) {
                Topology& node = nodes.emplace_back(model.topology(allowed));
                node.source =
                    fmt::format("{} packages, {} NUMA nodes, {} L3s, {} cores, {} threads, {} GPUs{}",
                                packages, numa, l3s, cores, threads, gpus, restricted ? ", with holes" : "");
                std::vector<int> near;
                for (int gpu = 0; gpu < gpus; ++gpu) near.push_back((gpu * 5 + 1) % (packages * numa));
                add_gpus_on_numa(node, near);
              }
            }
          }
        }
      }
    }
  }
  return nodes;
}

/// Every rank has CPUs that the job may use and no other rank has, the requested number of cores, and a reason; no
/// rank has more GPUs than requested.
bool is_right(const BindingPlan& plan, const Topology& node, const BindingPolicy& policy, int ranks) {
  if (plan.ranks.size() != static_cast<std::size_t>(ranks)) return false;
  CpuSet taken;
  std::map<int, int> ranks_of_gpu;
  for (const RankBinding& rank : plan.ranks) {
    if (rank.cpus.is_empty() || !rank.cpus.is_subset_of(node.allowed) || rank.cpus.intersects(taken))
      return false;
    if (rank.why.empty() || rank.threads < 1 || rank.numa_nodes.empty()) return false;
    if (policy.cores_per_rank > 0 && rank.threads != policy.cores_per_rank) return false;
    if (policy.gpus_per_rank > 0 && rank.gpus.size() != static_cast<std::size_t>(policy.gpus_per_rank))
      return false;
    for (const AssignedGpu& gpu : rank.gpus) ++ranks_of_gpu[gpu.index];
    taken |= rank.cpus;
  }
  const int max_ranks = policy.ranks_per_gpu > 0   ? policy.ranks_per_gpu
                        : policy.gpus_per_rank > 0 ? 1
                                                   : ranks;
  return std::all_of(ranks_of_gpu.begin(), ranks_of_gpu.end(),
                     [&](const auto& one) { return one.second <= max_ranks; });
}

/// Plans on all nodes for 1 to 8 ranks, as far as there is a plan; how many there were.
int plan_everywhere(const std::vector<BindingPolicy>& policies) {
  static const std::vector<Topology> nodes = all_nodes();
  int plans = 0;
  for (const Topology& node : nodes) {
    for (std::size_t policy = 0; policy < policies.size(); ++policy) {
      for (const int ranks : {1, 2, 3, 4, 7, 8}) {
        const auto plan = plan_binding(node, policies[policy], ranks);
        if (!plan) continue;
        ++plans;
        if (is_right(*plan, node, policies[policy], ranks)) continue;
        INFO(node.source << ", policy " << policy << ", " << ranks << " ranks");
        FAIL_CHECK(as_mask_cpu(*plan));
      }
    }
  }
  return plans;
}

}  // namespace

TEST_CASE("on any node, every rank gets CPUs, only allowed ones, and none of another rank") {
  std::vector<BindingPolicy> policies;
  for (const BindTo kind : {BindTo::kAuto, BindTo::kGpu, BindTo::kNuma, BindTo::kL3, BindTo::kSocket,
                            BindTo::kCore, BindTo::kPu}) {
    for (const bool reserves : {false, true}) {
      for (const bool smt : {false, true}) {
        BindingPolicy& policy = policies.emplace_back();
        policy.bind_to = kind;
        policy.reserved.first_core_per_l3 = reserves;
        policy.smt = smt;
      }
    }
  }
  CHECK(plan_everywhere(policies) > 20000);
}

TEST_CASE("on any node, the requested numbers of cores and GPUs are respected") {
  std::vector<BindingPolicy> policies;
  for (const RankOrder order : {RankOrder::kGpu, RankOrder::kCpu}) {
    for (const int cores : {0, 1, 2}) {
      for (const auto& [gpus_per_rank, ranks_per_gpu] :
           {std::pair{0, 0}, std::pair{1, 0}, std::pair{2, 0}, std::pair{0, 1}, std::pair{0, 3}}) {
        BindingPolicy& policy = policies.emplace_back();
        policy.rank_order = order;
        policy.cores_per_rank = cores;
        policy.gpus_per_rank = gpus_per_rank;
        policy.ranks_per_gpu = ranks_per_gpu;
      }
    }
  }
  CHECK(plan_everywhere(policies) > 10000);
}

TEST_CASE("fast cores with two hardware threads and slow ones with one are all cores") {
  // Four with CPUs 0,1 to 6,7, and eight with one CPU each, as a hybrid client processor counts them.
  Topology node = Model{1, 1, 1, 16, 1, true}.topology();
  node.cores.clear();
  for (int cpu = 0; cpu < 8; cpu += 2) node.cores.push_back({CpuSet::of({cpu, cpu + 1}), 0, 0, 0});
  for (int cpu = 8; cpu < 16; ++cpu) node.cores.push_back({CpuSet::of({cpu}), 0, 0, 0});
  std::string cpus;
  for (const RankBinding& rank : planned(node, {}, 3).ranks) cpus += rank.cpus.list() + " ";
  CHECK(cpus == "0,2,4,6 8-11 12-15 ");
  BindingPolicy smt;
  smt.smt = true;
  CHECK(planned(node, smt, 3).ranks[0].cpus.list() == "0-7");
  CHECK(planned(node, {}, 12).ranks[4].cpus.list() == "8");
}
