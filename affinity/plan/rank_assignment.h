// Which cores, GPUs and network adapters each local rank is assigned, before plan_binding() turns cores into CPUs.
// There are three ways: by CPU domain (assign_by_cpu.cpp), by object (assign_by_object.cpp) and by GPU
// (assign_by_gpu.cpp). even_split.cpp splits cores for all of them. For the planner's own sources only.
#pragma once

#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

// What a local rank is assigned, in cores and not yet in CPUs.

struct AssignedRank {
  std::vector<int> cores;  ///< positions in Topology::cores, by first CPU; not empty
  CpuSet cpus;             ///< of them only these; empty: as the policy says
  std::vector<AssignedGpu> gpus;
  std::vector<std::string> nics;
  std::string why;
};

struct Assignment {
  std::vector<AssignedRank> ranks;  ///< by local rank
  std::vector<std::string> warnings;
};

/// Cores become CPUs, and what follows from them.
BindingPlan plan_of(Assignment assignment, const Topology& topology, const BindingPolicy& policy);

/// Leaves each rank the first policy.cores_per_rank of its cores; an error that names the rank that has fewer.
Status keep_cores(Assignment& assignment, const BindingPolicy& policy, const Topology& topology);

/// Where ranks have cores in common: a warning if policy.oversubscribe allows it, else an error that names two of
/// them.
Status allow_sharing(Assignment& assignment, const BindingPolicy& policy, const Topology& topology);

// The usable cores of a node, grouped by what they share.

/// Usable cores that share a package, a NUMA node, an L3 or a core.
struct Domain {
  std::vector<int> cores;  ///< positions in Topology::cores, by first CPU; not empty
  std::string name;        ///< "NUMA node 3"
};

/// The domains of a kind, by their first core. Every kind but kSocket, kNuma and kL3 stands for cores.
std::vector<Domain> domains_of(const Topology& topology, const UsableCores& usable, BindTo kind);

/// A hardware thread.
struct Pu {
  int core;  ///< position in Topology::cores
  int cpu;
};

/// The hardware threads of usable cores, core by core.
std::vector<Pu> pus_of(const Topology& topology, const UsableCores& usable);

// How a row of cores is split.

/// A run of neighbours in a row.
struct Share {
  int first = 0;
  int count = 0;
  bool operator==(const Share&) const = default;
};

/// Part number index of count items split evenly into parts: it begins at ceil(index * count / parts). Some parts are
/// empty if there are fewer items than parts.
constexpr Share share_of(int count, int index, int parts) {
  const auto cut = [&](int at) -> int { return (static_cast<long long>(at) * count + parts - 1) / parts; };
  return {cut(index), cut(index + 1) - cut(index)};
}

/// The items of a share.
template <class T>
std::vector<T> take(const std::vector<T>& row, Share share) {
  return {row.begin() + share.first, row.begin() + share.first + share.count};
}

/// The cores, with those that share a package, a NUMA node and an L3 side by side: the operating system may number them
/// in the packages in turn.
std::vector<int> in_domain_order(const Topology& topology, const std::vector<int>& cores);

/// The cores split into so many parts, of which each has cores side by side: neighbours in a cache, a NUMA node or a
/// package. If there are several kinds of cores, and at least one of each for each part, every kind is split. Some parts
/// are empty if there are fewer cores than parts. Each part is sorted.
std::vector<std::vector<int>> parts_of(const Topology& topology, const std::vector<int>& cores, int parts);

/// All usable cores, of which there is at least one for each rank. Each rank has an even share of them, and its cores
/// share a package, a NUMA node or an L3 where that is possible. cores_per_rank: how many it will keep; 0: all.
Assignment split_evenly(const Topology& topology, const UsableCores& usable, int cores_per_rank, int ranks);

/// Adds a warning where a rank lies on several packages, or else NUMA nodes, that it shares with other ranks.
void warn_of_cuts(Assignment& assignment, const Topology& topology, const UsableCores& usable);

/// Adds warnings where ranks have very different numbers of cores, or different kinds of them.
void warn_of_differences(Assignment& assignment, const Topology& topology);

// Ranks by CPU: each has domains of its own, or a part of one.

/// BindTo::kAuto: as split_evenly(), with a warning for what had to be cut. With more ranks than cores, ranks have hardware threads
/// of their own for BindTo::kAuto and kPu, and with policy.smt.
Result<Assignment> assign_by_cpu(const Topology& topology, const BindingPolicy& policy,
                                 const UsableCores& usable, int local_ranks);

// Ranks by object, as the user maps them: each has a part of its object.

/// By policy.mapping, whose object is not kAuto. Objects are taken in hwloc's order. The ranks of an object share it as
/// assign_by_cpu() would share a node; with policy.cores_per_rank each takes the next cores of it. Error
/// kInvalidArgument: an object has too few cores for its ranks.
Result<Assignment> assign_by_object(const Topology& topology, const BindingPolicy& policy,
                                    const UsableCores& usable, int local_ranks);

// Ranks by GPU: each has GPUs, and cores near to them.

Result<Assignment> assign_by_gpu(const Topology& topology, const BindingPolicy& policy,
                                 const UsableCores& usable, int local_ranks);

/// The adapter nearest to a GPU among those at least half as fast as the fastest, or, where no speeds are known, among
/// those of a fabric such as InfiniBand if there are some: behind the same PCI switch, else on
/// its NUMA node, else in its package; among equals, the i-th of the GPUs that have the same choice has the i-th. ""
/// if several adapters are equally near by none of these criteria.
std::vector<std::string> nics_of_gpus(const Topology& topology);

}  // namespace ddl::affinity
