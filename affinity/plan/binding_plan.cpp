#include "affinity/plan/binding_plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "affinity/plan/rank_assignment.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

constexpr std::array<std::pair<BindTo, const char*>, 8> kBindToNames{{{BindTo::kAuto, "auto"},
                                                                      {BindTo::kGpu, "gpu"},
                                                                      {BindTo::kNuma, "numa"},
                                                                      {BindTo::kL3, "l3"},
                                                                      {BindTo::kSocket, "socket"},
                                                                      {BindTo::kCore, "core"},
                                                                      {BindTo::kPu, "pu"},
                                                                      {BindTo::kNone, "none"}}};

}  // namespace

std::optional<BindTo> parse_bind_to(std::string_view text) {
  for (const auto& [value, name] : kBindToNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

const char* name_of(BindTo bind_to) {
  for (const auto& [value, name] : kBindToNames) {
    if (value == bind_to) return name;
  }
  return "";
}

std::string text_of(const ObjectMapping& mapping) {
  const char* object = mapping.object == BindTo::kPu   ? "hwthread"
                       : mapping.object == BindTo::kL3 ? "l3cache"
                                                       : name_of(mapping.object);
  return mapping.ranks_per_object > 0 ? fmt::format("ppr:{}:{}", mapping.ranks_per_object, object) : object;
}

UsableCores usable_cores(const Topology& topology, const BindingPolicy& policy) {
  const CpuSet reserved = reserved_cpus(policy.reserved, topology.l3s);
  UsableCores usable;
  usable.reserves_first_of_share = policy.reserved.first_core_per_l3 && topology.l3s.empty();
  for (int i = 0; i < std::ssize(topology.cores); ++i) {
    const Core& core = topology.cores[i];
    if (core.cpus.intersects(reserved)) {
      usable.reserved |= core.cpus;
    } else {
      usable.cores.push_back(i);
    }
  }
  return usable;
}

namespace {

/// More than any node has. The value comes from the user.
constexpr std::size_t kMaxVisible = 1024;

bool is_uuid(std::string_view word) { return word.starts_with("GPU-") || word.starts_with("MIG-"); }

std::optional<Gpu> gpu_named(const std::vector<Gpu>& gpus, GpuVendor vendor, std::string_view word) {
  const auto index = parse_integer(word);
  const auto is_meant = [&](const Gpu& gpu) {
    if (gpu.vendor != vendor) return false;
    return index ? gpu.index == *index : is_uuid(word) && gpu.uuid.starts_with(word);
  };
  const auto found = std::find_if(gpus.begin(), gpus.end(), is_meant);
  if (found != gpus.end()) return *found;
  if (!is_uuid(word)) return std::nullopt;
  Gpu unknown;
  unknown.vendor = vendor;
  unknown.uuid = word;
  return unknown;
}

}  // namespace

void keep_visible(Topology& topology, GpuVendor vendor, std::string_view value) {
  std::vector<Gpu> visible;
  for (const std::string_view part : split(value, ',')) {
    const std::string_view word = trim(part);
    auto gpu = gpu_named(topology.gpus, vendor, word);
    if (!gpu || visible.size() == kMaxVisible) break;
    gpu->visible_as = word;
    visible.push_back(*std::move(gpu));
  }
  // A device whose position in the node is unknown is numbered as the program will number it.
  for (int i = 0; i < std::ssize(visible); ++i) {
    if (visible[i].bus_id.empty() && !visible[i].uuid.empty()) visible[i].index = i;
  }
  topology.gpus = std::move(visible);
}

namespace {

/// Fills in what follows from the rank's cores.
void complete(RankBinding& rank, const Topology& topology, const AssignedRank& own,
              const BindingPolicy& policy) {
  const std::vector<int>& cores = own.cores;
  CpuSet all;
  int l3 = topology.cores[cores.front()].l3;
  for (const int index : cores) {
    const Core& core = topology.cores[index];
    if (policy.smt) {
      all |= core.cpus;
    } else {
      all.add(core.cpus.first());
    }
    const int numa = topology.numa_nodes[core.numa].os_index;
    if (std::find(rank.numa_nodes.begin(), rank.numa_nodes.end(), numa) == rank.numa_nodes.end())
      rank.numa_nodes.push_back(numa);
    if (core.l3 != l3) l3 = -1;
  }
  rank.cpus = own.cpus.is_empty() ? all : own.cpus;
  std::sort(rank.numa_nodes.begin(), rank.numa_nodes.end());
  rank.first_cpu = rank.cpus.first();
  rank.threads = cores.size();
  rank.package = topology.cores[cores.front()].package;
  rank.l3 = l3;
}

}  // namespace

BindingPlan plan_of(Assignment assignment, const Topology& topology, const BindingPolicy& policy) {
  BindingPlan plan;
  plan.binds_memory = policy.memory == MemoryBinding::kLocal;
  plan.warnings = topology.warnings;
  plan.warnings.insert(plan.warnings.end(), assignment.warnings.begin(), assignment.warnings.end());
  for (int rank = 0; rank < std::ssize(assignment.ranks); ++rank) {
    AssignedRank& own = assignment.ranks[rank];
    RankBinding& binding = plan.ranks.emplace_back();
    binding.local_rank = rank;
    binding.gpus = std::move(own.gpus);
    binding.nics = std::move(own.nics);
    binding.why = std::move(own.why);
    complete(binding, topology, own, policy);
  }
  return plan;
}

Result<BindingPlan> plan_binding(const Topology& topology, const BindingPolicy& policy, int local_ranks) {
  BindingPlan plan;
  plan.warnings = topology.warnings;
  if (policy.bind_to == BindTo::kNone || local_ranks <= 0) return plan;
  const UsableCores usable = usable_cores(topology, policy);
  if (usable.cores.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("no core is left for ranks: of {}, CPUs {} are reserved",
                            counted(topology.cores.size(), "core"), usable.reserved.list()));
  }
  const bool by_object = policy.mapping.object != BindTo::kAuto;
  const bool by_gpu = !by_object && (policy.bind_to == BindTo::kGpu ||
                                     (policy.bind_to == BindTo::kAuto && !topology.gpus.empty()));
  if (!by_gpu && (policy.gpus_per_rank > 0 || policy.ranks_per_gpu > 0)) {
    return fail(ErrorCode::kInvalidArgument,
                topology.gpus.empty()
                    ? "--gpus-per-rank and --ranks-per-gpu: this node has no GPU"
                    : std::string("--gpus-per-rank and --ranks-per-gpu need --bind-to gpu, not ") +
                          (by_object ? "--map-by " + text_of(policy.mapping) : name_of(policy.bind_to)));
  }
  int cpus = 0;
  for (const int core : usable.cores) cpus += topology.cores[core].cpus.count();
  if (policy.bind_to == BindTo::kAuto && !by_gpu && !by_object && local_ranks > cpus &&
      policy.oversubscribe) {
    plan.warnings.push_back(
        fmt::format("{} for {}: ranks are bound to nothing, so that the system may move them",
                    counted(local_ranks, "rank"), counted(cpus, "CPU")));
    return plan;
  }
  DDL_ASSIGN(assigned, by_object ? assign_by_object(topology, policy, usable, local_ranks)
                       : by_gpu  ? assign_by_gpu(topology, policy, usable, local_ranks)
                                 : assign_by_cpu(topology, policy, usable, local_ranks));
  warn_of_differences(assigned, topology);
  return plan_of(std::move(assigned), topology, policy);
}

}  // namespace ddl::affinity
