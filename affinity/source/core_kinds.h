// Which cores of a node are faster than others: performance and efficiency cores, or Arm's big and LITTLE ones.
#pragma once

#include <string>
#include <vector>

#include "affinity/topology.h"

namespace ddl::affinity {

/// CPUs that hwloc lists as one kind. Cores of the same design are several kinds there if some may be clocked a little
/// higher.
struct ListedKind {
  CpuSet cpus;
  int efficiency = -1;  ///< hwloc's order, the slowest is 0; -1: unknown
  std::string type;     ///< "IntelCore", "apple,icestorm"; "" if unknown
  int capacity = 0;     ///< as Linux compares cores of Arm, 1024 for the fastest; 0: unknown
  int max_mhz = 0;      ///< 0: unknown
};

/// Kinds of the same type become one, and without types those whose capacity, else whose highest frequency, is nearly
/// the same. Empty if less than two kinds are left. Pure.
std::vector<CoreKind> kinds_of(std::vector<ListedKind> listed);

/// Sets the kind of each core, and the kinds, unless a core is of none of them. Pure.
void set_core_kinds(Topology& topology, std::vector<CoreKind> kinds);

}  // namespace ddl::affinity
