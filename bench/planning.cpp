#include "bench/planning.h"

#include <chrono>

#include "affinity/plan/planner.h"
#include "affinity/source/node_model.h"
#include "bench/statistics.h"

namespace ddl::bench {
namespace {

constexpr const char* kName = "ddlrun-planning";
constexpr const char* kLabel = "planning 8 ranks on 256 CPUs with 8 GPUs";
constexpr const char* kUnit = "seconds";

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

}  // namespace

Gauge planning_gauge(const Settings& settings) {
  using Clock = std::chrono::steady_clock;
  const auto topology = affinity::topology_of_model(large_node(), "model");
  if (!topology) return {kName, kLabel, kUnit, std::nullopt, topology.error().message()};
  std::vector<double> seconds;
  const int times = settings.quick ? 3 : 200;
  for (int i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    const auto plan = affinity::plan_binding(*topology, {}, 8);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    if (!plan) return {kName, kLabel, kUnit, std::nullopt, plan.error().message()};
  }
  return {kName, kLabel, kUnit, median(std::move(seconds)), "the topology is loaded"};
}

}  // namespace ddl::bench
