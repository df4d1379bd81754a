#include "bench/planning_gauges.h"

#include <malloc.h>

#include <chrono>

#include "affinity/plan/binding_plan.h"
#include "affinity/source/node_model.h"
#include "base/environment.h"
#include "bench/statistics.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/codec.h"

namespace ddl::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// As a DGX A100: two packages of 64 cores with two threads each.
affinity::NodeModel large_node() {
  affinity::NodeModel model;
  model.packages = 2;
  model.numa_per_package = 4;
  model.l3s_per_numa = 4;
  model.cores_per_l3 = 4;
  model.threads_per_core = 2;
  model.gpu_numa = {3, 3, 1, 1, 7, 7, 5, 5};
  return model;
}

Result<double> binding_seconds(int times) {
  DDL_ASSIGN(topology, affinity::topology_of_model(large_node(), "model"));
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    const auto plan = affinity::plan_binding(topology, {}, 8);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    if (!plan) return fail(plan.error());
  }
  return median(std::move(seconds));
}

constexpr int kNodes = 10'000;
constexpr int kRanksOfNode = 8;

struct LargePlan {
  double seconds = 0;
  double bytes = 0;
};

Result<LargePlan> large_plan(int times) {
  launcher::JobSpec spec;
  spec.command = {"./train"};
  spec.num_ranks = kNodes * kRanksOfNode;
  launcher::Allocation allocation;
  for (int i = 0; i < kNodes; ++i) allocation.nodes.emplace_back().name = "node" + std::to_string(i);
  DDL_ASSIGN(placement, launcher::place(spec, allocation, std::vector<int>(kNodes, kRanksOfNode)));
  launcher::NodeFacts facts;
  facts.allowed_cores = facts.allowed_cpus = 128;
  facts.master_address = "10.0.0.1";
  facts.held_ports = {40000, 40001};
  const std::vector<launcher::NodeFacts> all(kNodes, facts);
  // Each node is bound in its own way, as far as the encoding can tell.
  DDL_ASSIGN(topology, affinity::topology_of_model(large_node(), "model"));
  DDL_ASSIGN(plan_of_node, affinity::plan_binding(topology, {}, kRanksOfNode));
  launcher::NodeBinding binding;
  binding.plan = std::move(plan_of_node);
  const std::vector<launcher::NodeBinding> bindings(kNodes, binding);
  const Environment environment = process_environment();

  LargePlan result;
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    const auto used_before = ::mallinfo2();
    const auto begin = Clock::now();
    const launcher::LaunchPlan plan = launcher::make_launch_plan(
        spec, {placement, all, "ddlrun-1-2", bindings, launcher::no_scheduler()}, environment);
    std::vector<net::Frame> frames;
    const auto add = [&](const launcher::message::HeadToAgent& message) {
      frames.push_back(launcher::message::encode(message));
    };
    add(launcher::message::LaunchJob{plan.job});
    for (const launcher::NodeLaunch& node : plan.nodes) add(launcher::message::Launch{node});
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    const auto used = ::mallinfo2();
    result.bytes = static_cast<double>(used.uordblks + used.hblkhd) -
                   static_cast<double>(used_before.uordblks + used_before.hblkhd);
  }
  result.seconds = median(std::move(seconds));
  return result;
}

}  // namespace

std::vector<Gauge> planning_gauges(const Settings& settings) {
  const auto gauge = [](const char* name, const char* label, const char* unit, const Result<double>& found,
                        const char* note) {
    if (!found) return Gauge{name, label, unit, std::nullopt, found.error().message()};
    return Gauge{name, label, unit, *found, note};
  };
  const auto large = large_plan(settings.quick ? 1 : 5);
  return {gauge("ddlrun-planning", "planning 8 ranks on 256 CPUs with 8 GPUs", "seconds",
                binding_seconds(settings.quick ? 3 : 200), "the topology is loaded"),
          gauge("ddlrun-large-plan", "planning and encoding 10,000 nodes of 8 ranks", "seconds",
                large.map([](const LargePlan& plan) { return plan.seconds; }), "bindings are planned"),
          gauge("ddlrun-large-plan-memory", "memory of this plan and its messages", "bytes",
                large.map([](const LargePlan& plan) { return plan.bytes; }), "allocated at the same time")};
}

}  // namespace ddl::bench
