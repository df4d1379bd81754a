// A node as people draw it: packages contain NUMA nodes, these contain L3s, and these contain cores. GPUs and NICs
// are listed at the NUMA node that they are near.
#pragma once

#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"

namespace ddl::affinity {

struct CoreMark {
  int core = 0;            ///< position in Topology::cores
  std::vector<int> ranks;  ///< local ranks that may run on it
};

struct L3Map {
  std::string name;  ///< "L3"; "" if it is unknown which cores share one
  std::vector<CoreMark> cores;
};

struct DeviceMark {
  std::string name;        ///< "GPU 3 (0000:c1:00.0)", "hsn0"
  std::vector<int> ranks;  ///< local ranks that have it
  bool is_gpu = false;
};

struct NumaMap {
  std::string name;  ///< "NUMA node 3, 128 GB"
  std::vector<L3Map> l3s;
  std::vector<DeviceMark> devices;
};

struct PackageMap {
  std::string name;  ///< "package 0"; "" if it is the only one
  std::vector<NumaMap> numa_nodes;
};

struct NodeMap {
  std::vector<PackageMap> packages;
  std::vector<DeviceMark> elsewhere;  ///< near no single NUMA node, or it is unknown which one
};

/// Pure. plan may have no ranks.
NodeMap map_of(const Topology& topology, const BindingPlan& plan);

}  // namespace ddl::affinity
