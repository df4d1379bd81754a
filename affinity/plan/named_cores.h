// Ranks bound to cores that the user names by hwloc's logical indices, as in a rankfile of Open MPI.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

struct CoreRange {
  static constexpr int kToTheEnd = std::numeric_limits<int>::max();
  std::optional<int> package;  ///< its cores are meant, which count from 0; nullopt: those of the node
  int first = 0;
  int last = 0;  ///< kToTheEnd: all from the first on that the job may use
  /// The numbers are those of the operating system's CPUs, and the cores that these belong to are meant.
  bool are_cpus = false;
  bool operator==(const CoreRange&) const = default;
};
using NamedCores = std::vector<CoreRange>;

/// The positions in Topology::cores of these cores, by first CPU. Error kInvalidArgument: the node does not have one of
/// them, or the job may not use it.
Result<std::vector<int>> find_cores(const Topology& topology, const NamedCores& named);

/// A rank and its cores.
struct RankOnCores {
  std::vector<int> cores;  ///< of find_cores(); not empty
  std::string why;         ///< as RankBinding::why
};

/// Each local rank is bound to all hardware threads of its cores. Where ranks share a core, there is a warning. Of the
/// policy only MemoryBinding is used.
BindingPlan plan_on_cores(const Topology& topology, const BindingPolicy& policy,
                          const std::vector<RankOnCores>& ranks);

}  // namespace ddl::affinity
