#include "affinity/output/binding_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::affinity {
namespace {

template <class Text>
std::string joined(const BindingPlan& plan, const char* separator, Text text) {
  std::vector<std::string> parts;
  for (const RankBinding& rank : plan.ranks) parts.push_back(text(rank));
  return join(parts, separator);
}

std::string nodes_of(const RankBinding& rank) { return CpuSet::of(rank.numa_nodes).mask(); }

}  // namespace

std::string as_map_cpu(const BindingPlan& plan) {
  return "map_cpu:" +
         joined(plan, ",", [](const RankBinding& rank) { return std::to_string(rank.first_cpu); });
}

std::string as_mask_cpu(const BindingPlan& plan) {
  return "mask_cpu:" + joined(plan, ",", [](const RankBinding& rank) { return rank.cpus.mask(); });
}

std::string as_srun_options(const BindingPlan& plan) {
  int threads = 1;
  for (const RankBinding& rank : plan.ranks) threads = std::max(threads, rank.threads);
  // srun does not take --cpus-per-task over from the job since 22.05.
  return fmt::format("--cpu-bind={} --cpus-per-task={}", as_mask_cpu(plan), threads);
}

std::string as_taskset(const BindingPlan& plan) {
  return joined(plan, "\n", [](const RankBinding& rank) { return "taskset -c " + rank.cpus.list(); });
}

std::string as_hwloc_bind(const BindingPlan& plan) {
  return joined(plan, "\n", [&](const RankBinding& rank) {
    const std::string memory = plan.binds_memory ? " --membind nodeset:" + nodes_of(rank) : "";
    return "hwloc-bind --cpubind " + rank.cpus.mask() + memory;
  });
}

std::string as_omp_places(const BindingPlan& plan) {
  return joined(plan, "\n", [](const RankBinding& rank) {
    std::vector<std::string> places;
    for (const int cpu : rank.cpus.cpus()) places.push_back(fmt::format("{{{}}}", cpu));
    return join(places, ",");
  });
}

std::string as_rankfile(const BindingPlan& plan, const std::string& host, int first_rank) {
  return joined(plan, "\n", [&](const RankBinding& rank) {
    return fmt::format("rank {}={} slot={}", first_rank + rank.local_rank, host, rank.cpus.list());
  });
}

}  // namespace ddl::affinity
