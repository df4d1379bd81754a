// The usable cores of a node, grouped by what they share: a package, a NUMA node, an L3 cache, a core. For the planner's
// own sources only.
#pragma once

#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"

namespace ddl::affinity {

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

}  // namespace ddl::affinity
