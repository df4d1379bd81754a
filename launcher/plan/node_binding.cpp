#include "launcher/plan/node_binding.h"

#include <algorithm>
#include <array>
#include <optional>

#include "affinity/plan/binding_plan.h"
#include "affinity/plan/named_cores.h"
#include "base/text.h"
#include "contract/environment.h"

namespace ddl::launcher {
namespace {

namespace env = contract::env;
using affinity::GpuVendor;

/// The variables that select the visible GPUs of a vendor. ddlrun sets the first one, unless the user has set
/// another. Only one may be set: several would be applied one after the other, each to the renumbered GPUs that the
/// previous one has left.
struct VisibilityVariables {
  GpuVendor vendor;
  std::array<const char*, 2> names;
};
constexpr std::array<VisibilityVariables, 3> kVisibility{{
    {GpuVendor::kNvidia, {env::kCudaVisibleDevices, nullptr}},
    {GpuVendor::kAmd, {env::kRocrVisibleDevices, env::kHipVisibleDevices}},
    {GpuVendor::kIntel, {env::kZeAffinityMask, nullptr}},
}};

const char* variable_set_in(const Environment& environment, const VisibilityVariables& variables) {
  for (const char* name : variables.names) {
    if (name != nullptr && environment.contains(name)) return name;
  }
  return nullptr;
}

affinity::Topology as_visible(affinity::Topology topology, const Environment& common) {
  for (const VisibilityVariables& one : kVisibility) {
    const bool has_some = std::any_of(topology.gpus.begin(), topology.gpus.end(),
                                      [&](const affinity::Gpu& gpu) { return gpu.vendor == one.vendor; });
    const char* const name = variable_set_in(common, one);
    if (!has_some || name == nullptr) continue;
    affinity::keep_visible(topology, one.vendor, common.at(name));
    break;
  }
  return topology;
}

/// Ranks that take no slots are the last ones, and are not bound.
int bound_ranks(const JobSpec& spec, const PlacedNode& node) {
  const int end = spec.num_ranks - num_without_slots(spec.roles);
  return std::count_if(node.ranks.begin(), node.ranks.end(), [end](int rank) { return rank < end; });
}

/// Level Zero's variable selects GPUs, and does not order them.
bool can_order(const std::vector<affinity::AssignedGpu>& gpus) {
  return gpus.front().vendor != GpuVendor::kIntel ||
         std::is_sorted(gpus.begin(), gpus.end(),
                        [](const auto& a, const auto& b) { return a.index < b.index; });
}

/// If every rank has one GPU, and no two the same.
bool can_share_view(const affinity::BindingPlan& plan) {
  std::vector<affinity::AssignedGpu> gpus;
  for (const affinity::RankBinding& rank : plan.ranks) {
    if (rank.gpus.size() != 1) return false;
    const affinity::AssignedGpu& own = rank.gpus.front();
    if (std::find(gpus.begin(), gpus.end(), own) != gpus.end() ||
        (!gpus.empty() && own.vendor != gpus.front().vendor))
      return false;
    gpus.push_back(own);
  }
  return !gpus.empty() && can_order(gpus);
}

bool wants_shared_view(const JobSpec& spec) {
  return spec.gpu_view == GpuView::kNode ||
         (spec.gpu_view == GpuView::kByFramework && chooses_gpu_by_local_rank(spec.framework));
}

/// The first local_ranks ranks of the node, by the rankfile if there is one.
Result<affinity::BindingPlan> plan_ranks(const JobSpec& spec, const affinity::Topology& topology,
                                         const std::vector<int>& ranks, int local_ranks) {
  if (spec.placed_ranks.empty()) return affinity::plan_binding(topology, spec.binding, local_ranks);
  std::vector<affinity::RankOnCores> placed;
  for (int local_rank = 0; local_rank < local_ranks; ++local_rank) {
    const int rank = ranks[local_rank];
    const RankfileEntry& entry = spec.placed_ranks[rank];
    auto cores = affinity::find_cores(topology, entry.cores);
    if (!cores)
      return fail(std::move(cores.error()).during("rank " + std::to_string(rank)).during(entry.origin));
    placed.push_back({*std::move(cores), "is placed by " + entry.origin});
  }
  return affinity::plan_on_cores(topology, spec.binding, placed);
}

/// topology: that of the facts, less the GPUs that are not visible. ranks: of the node.
Result<NodeBinding> bind_node(const JobSpec& spec, const NodeFacts& facts, const affinity::Topology& topology,
                              const std::vector<int>& ranks, int local_ranks) {
  NodeBinding binding;
  if (spec.binding.bind_to == affinity::BindTo::kNone) {
    if (spec.gpu_view != GpuView::kByFramework && !topology.gpus.empty())
      binding.other_view_because = "--visible-gpus: with --bind-to none ranks see all GPUs of the node";
    return binding;
  }
  const bool is_required = is_binding_asked_for(spec);
  if (topology.cores.empty()) {
    binding.unbound_because = "its topology is not known: " + facts.topology_failure;
    if (is_required) return fail(ErrorCode::kUnavailable, binding.unbound_because);
    return binding;
  }
  auto plan = plan_ranks(spec, topology, ranks, local_ranks);
  if (plan) {
    binding.plan = *std::move(plan);
    binding.shares_view_of_gpus = wants_shared_view(spec) && can_share_view(binding.plan);
    const bool has_gpus = std::any_of(binding.plan.ranks.begin(), binding.plan.ranks.end(),
                                      [](const auto& rank) { return !rank.gpus.empty(); });
    if (spec.gpu_view == GpuView::kNode && has_gpus && !binding.shares_view_of_gpus)
      binding.other_view_because =
          "--visible-gpus node: ranks see their own GPUs only, because some have several "
          "or share one";
    if (spec.gpu_view != GpuView::kByFramework && !has_gpus && !topology.gpus.empty())
      binding.other_view_because = "--visible-gpus: ranks are not bound to GPUs, so they see all of the node";
  } else if (is_required) {
    return fail(std::move(plan.error()));
  } else {
    binding.unbound_because = plan.error().message();
  }
  return binding;
}

}  // namespace

Result<std::vector<NodeBinding>> bind_nodes(const JobSpec& spec, const Placement& placement,
                                            const std::vector<NodeFacts>& facts,
                                            const Environment& head_environment, const Scheduler& scheduler) {
  const Environment common = common_environment(head_environment, spec.exports);
  std::vector<NodeBinding> bindings;
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    const int ranks = bound_ranks(spec, placement.nodes[i]);
    const bool is_as_before = i > 0 && spec.placed_ranks.empty() &&
                              ranks == bound_ranks(spec, placement.nodes[i - 1]) &&
                              facts[i].topology == facts[i - 1].topology &&
                              facts[i].visible_devices == facts[i - 1].visible_devices;
    if (is_as_before) {
      bindings.push_back(bindings.back());
      continue;
    }
    auto binding =
        bind_node(spec, facts[i],
                  as_visible(facts[i].topology, with_visible_devices(common, facts[i], spec, scheduler)),
                  placement.nodes[i].ranks, ranks);
    if (!binding) return fail(std::move(binding.error()).during(placement.nodes[i].name));
    bindings.push_back(*std::move(binding));
  }
  return bindings;
}

bool chooses_gpu_by_local_rank(Framework framework) {
  using enum Framework;
  return framework == kAuto || framework == kTorch || framework == kHorovod || framework == kDeepspeed ||
         framework == kJax;
}

std::vector<affinity::AssignedGpu> visible_gpus(const NodeBinding& binding, int local_rank) {
  if (!binding.shares_view_of_gpus) return binding.plan.ranks.at(local_rank).gpus;
  std::vector<affinity::AssignedGpu> gpus;
  for (const affinity::RankBinding& rank : binding.plan.ranks) gpus.push_back(rank.gpus.front());
  return gpus;
}

bool is_binding_asked_for(const JobSpec& spec) {
  return spec.strict_bind || !spec.placed_ranks.empty() ||
         spec.binding != affinity::BindingPolicy{.oversubscribe = spec.binding.oversubscribe};
}

std::vector<std::string> visible_device_variables() {
  return {env::kCudaVisibleDevices, env::kRocrVisibleDevices, env::kHipVisibleDevices, env::kZeAffinityMask,
          env::kGpuDeviceOrdinal};
}

Environment with_visible_devices(Environment common, const NodeFacts& facts, const JobSpec& spec,
                                 const Scheduler& scheduler) {
  const std::vector<std::string> names = visible_device_variables();
  const bool user_sets_one =
      std::any_of(spec.exports.begin(), spec.exports.end(), [&](const EnvironmentExport& one) {
        return std::find(names.begin(), names.end(), one.name) != names.end();
      });
  if (!scheduler.selects_gpus() || user_sets_one) return common;
  for (const std::string& name : names) common.erase(name);
  for (const auto& [name, value] : facts.visible_devices) common[name] = value;
  return common;
}

std::optional<affinity::GpuVendor> vendor_of_gpus(const Environment& rank) {
  for (const VisibilityVariables& one : kVisibility) {
    if (variable_set_in(rank, one) != nullptr) return one.vendor;
  }
  return std::nullopt;
}

Environment binding_environment(const affinity::RankBinding& rank,
                                const std::vector<affinity::AssignedGpu>& visible,
                                const Environment& common) {
  Environment environment;
  if (!common.contains(env::kOmpNumThreads)) environment[env::kOmpNumThreads] = std::to_string(rank.threads);
  constexpr std::array kThreadBinding{env::kOmpPlaces, env::kOmpProcBind, "GOMP_CPU_AFFINITY",
                                      "KMP_AFFINITY"};
  const bool user_binds_threads = std::any_of(kThreadBinding.begin(), kThreadBinding.end(),
                                              [&](const char* name) { return common.contains(name); });
  if (!user_binds_threads) {
    std::vector<std::string> cpus;
    for (const int cpu : rank.cpus.cpus()) cpus.push_back(std::to_string(cpu));
    environment[env::kOmpPlaces] = "{" + join(cpus, ",") + "}";
    environment[env::kOmpProcBind] = "true";
  }
  if (!rank.nics.empty() && !common.contains(env::kNearNics))
    environment[env::kNearNics] = join(rank.nics, ",");
  if (!visible.empty()) {
    std::vector<std::string> devices;
    for (const affinity::AssignedGpu& gpu : visible)
      devices.push_back(gpu.visible_as.empty() ? std::to_string(gpu.index) : gpu.visible_as);
    const auto variables =
        std::find_if(kVisibility.begin(), kVisibility.end(),
                     [&](const VisibilityVariables& one) { return one.vendor == visible.front().vendor; });
    const char* const set = variable_set_in(common, *variables);
    environment[set != nullptr ? set : variables->names.front()] = join(devices, ",");
    // The GPUs are numbered in the order of the PCI bus; CUDA's default order begins with the fastest one.
    if (variables->vendor == GpuVendor::kNvidia && set == nullptr)
      environment[env::kCudaDeviceOrder] = "PCI_BUS_ID";
  }
  return environment;
}

}  // namespace ddl::launcher
