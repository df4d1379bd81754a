// The cores that ranks may have: what the job may use, less what is left to the system.
#pragma once

#include <string>
#include <vector>

#include "affinity/plan/binding_policy.h"
#include "affinity/topology.h"

namespace ddl::affinity {

struct UsableCores {
  std::vector<int> cores;  ///< positions in Topology::cores, by first CPU
  CpuSet reserved;         ///< CPUs that were allowed and are left to the system
  /// The first core of each share has still to be left out, because nothing tells the L3s.
  bool reserves_first_of_share = false;
};

/// A core that a cgroup has taken away already is not taken a second time.
UsableCores usable_cores(const Topology& topology, const BindingPolicy& policy);

}  // namespace ddl::affinity
