#include "affinity/plan/named_cores.h"

#include <algorithm>

#include <fmt/format.h>

#include "affinity/plan/rank_assignment.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

std::string name_of(const CoreRange& range, int core) {
  return range.package ? fmt::format("core {} of package {}", core, *range.package)
                       : fmt::format("core {}", core);
}

/// Those of the package, or all.
Result<std::vector<NumberedCore>> cores_counted(const Topology& topology, const CoreRange& range) {
  std::vector<NumberedCore> cores = numbered_cores(topology);
  if (!range.package) return cores;
  if (*range.package >= std::ssize(topology.packages))
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("there is no package {}: the node has {}, which count from 0", *range.package,
                            counted(topology.packages.size(), "package")));
  std::erase_if(cores, [&](const NumberedCore& core) { return core.package != *range.package; });
  return cores;
}

}  // namespace

namespace {

/// The position in Topology::cores of the core with one of these CPUs.
std::optional<int> position_of(const Topology& topology, const CpuSet& cpus) {
  const auto core = std::find_if(topology.cores.begin(), topology.cores.end(),
                                 [&](const Core& one) { return one.cpus.intersects(cpus); });
  if (core == topology.cores.end()) return std::nullopt;
  return static_cast<int>(core - topology.cores.begin());
}

Status add_cores(const Topology& topology, const CoreRange& range, std::vector<int>& found) {
  DDL_ASSIGN(counted_cores, cores_counted(topology, range));
  const int count = counted_cores.size();
  const bool is_open = range.last == CoreRange::kToTheEnd;
  const int last = is_open ? count - 1 : range.last;
  if (range.first >= count || last >= count)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("there is no {}: {} has {}, which count from 0",
                            name_of(range, std::max(range.first, last)),
                            range.package ? "the package" : "the node", counted(count, "core")));
  const std::size_t before = found.size();
  for (int index = range.first; index <= last; ++index) {
    const CpuSet& cpus = counted_cores[index].cpus;
    const auto core = position_of(topology, cpus);
    if (core) found.push_back(*core);
    if (!core && !is_open)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("the job may not use {} (CPUs {}); it may use CPUs {}", name_of(range, index),
                              cpus.list(), topology.allowed.list()));
  }
  if (found.size() == before)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the job may use no core of package {}; it may use CPUs {}",
                            range.package.value_or(0), topology.allowed.list()));
  return {};
}

Status add_cores_of_cpus(const Topology& topology, const CoreRange& range, std::vector<int>& found) {
  for (int cpu = range.first; cpu <= range.last; ++cpu) {
    const auto core = position_of(topology, CpuSet::of({cpu}));
    if (!core)
      return fail(
          ErrorCode::kInvalidArgument,
          topology.complete.contains(cpu)
              ? fmt::format("the job may not use CPU {}; it may use CPUs {}", cpu, topology.allowed.list())
              : fmt::format("there is no CPU {}: the node has CPUs {}", cpu, topology.complete.list()));
    found.push_back(*core);
  }
  return {};
}

}  // namespace

Result<std::vector<int>> find_cores(const Topology& topology, const NamedCores& named) {
  std::vector<int> found;
  for (const CoreRange& range : named) {
    DDL_TRY(range.are_cpus ? add_cores_of_cpus(topology, range, found) : add_cores(topology, range, found));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

BindingPlan plan_on_cores(const Topology& topology, const BindingPolicy& policy,
                          const std::vector<RankOnCores>& ranks) {
  BindingPolicy shared = policy;
  shared.smt = true;
  shared.oversubscribe = true;
  Assignment assignment;
  for (const RankOnCores& rank : ranks) {
    AssignedRank& own = assignment.ranks.emplace_back();
    own.cores = rank.cores;
    own.why = rank.why;
  }
  // Only adds a warning, because it is allowed.
  const Status allowed = allow_sharing(assignment, shared, topology);
  DDL_CHECK(allowed.has_value(), "ranks on named cores");
  return plan_of(std::move(assignment), topology, shared);
}

}  // namespace ddl::affinity
