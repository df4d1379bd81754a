// A topology from the few numbers that a site publishes about its nodes, for use without an hwloc file of a node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

/// A regular node: all packages have the same number of NUMA nodes, and so on down to hardware threads.
struct NodeModel {
  /// Which CPU is hardware thread t of core c.
  enum class Threads : std::uint8_t {
    kAcross,    ///< c + t * cores, as Linux counts on x86 and Arm
    kAdjacent,  ///< c * threads + t, as on POWER
  };
  struct Nic {
    std::string name;
    int numa = 0;
    bool operator==(const Nic&) const = default;
  };

  std::string board;
  int packages = 1;
  int numa_per_package = 1;
  int l3s_per_numa = 1;
  int cores_per_l3 = 1;
  int threads_per_core = 1;
  Threads threads = Threads::kAcross;
  std::uint64_t numa_memory_bytes = 0;  ///< 0: unknown
  ReservedCores reserved;               ///< cores that no job gets
  GpuVendor gpu_vendor = GpuVendor::kNvidia;
  std::string gpu_model;
  std::vector<int> gpu_numa;  ///< of each GPU, by index
  std::vector<Nic> nics;
  bool operator==(const NodeModel&) const = default;
};

/// Pure. source: for a person, as Topology::source. Error kInvalidArgument: a device on a NUMA node that the node
/// does not have, more CPUs than a set may have, or no core is left.
Result<Topology> topology_of_model(const NodeModel& model, const std::string& source);

}  // namespace ddl::affinity
