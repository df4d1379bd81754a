// Which CPUs, memory, GPUs and network adapter every rank of a node has, and why.
#pragma once

#include <string>
#include <vector>

#include "affinity/cpu_set.h"
#include "affinity/topology.h"

namespace ddl::affinity {

/// A GPU that a rank sees.
struct AssignedGpu {
  int index = 0;
  GpuVendor vendor = GpuVendor::kNvidia;
  std::string bus_id;
  std::string uuid;
  std::string visible_as;  ///< as Gpu::visible_as
  bool operator==(const AssignedGpu&) const = default;
};

struct RankBinding {
  int local_rank = 0;
  CpuSet cpus;                  ///< never empty, and none that the job may not use
  int first_cpu = 0;            ///< the lowest of them
  std::vector<int> numa_nodes;  ///< that its CPUs belong to, by the operating system's numbers
  std::vector<AssignedGpu> gpus;
  std::vector<std::string>
      nics;         ///< each near to one of its GPUs, in their order; empty if none is known to be
  int threads = 1;  ///< for OMP_NUM_THREADS: its cores
  int package = 0;  ///< of Topology::packages
  int l3 = -1;      ///< of Topology::l3s, if all its CPUs share one
  std::string why;  ///< one sentence
};

/// Nothing is bound if ranks is empty: that is BindTo::kNone.
struct BindingPlan {
  std::vector<RankBinding> ranks;  ///< by local rank
  bool binds_memory = false;
  std::vector<std::string> warnings;
};

}  // namespace ddl::affinity
