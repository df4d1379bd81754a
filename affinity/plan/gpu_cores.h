// The cores of each GPU: those near to it, split among the GPUs that are near to the same ones.
#pragma once

#include <string>
#include <vector>

#include "affinity/plan/usable_cores.h"
#include "affinity/topology.h"

namespace ddl::affinity {

struct GpuCores {
  std::vector<int> cores;  ///< positions in Topology::cores, by first CPU; not empty
  std::string why;         ///< "near CPUs 0-7, part 1 of 2"
};

struct GpuSplit {
  std::vector<GpuCores> gpus;  ///< as Topology::gpus
  std::vector<std::string> warnings;
};

/// No core belongs to two GPUs unless there are too few for all that must have their place in a package. All GPUs of the
/// node have cores, whether or not a rank uses them, so a GPU's are the same for every number of ranks.
/// usable.cores is not empty.
GpuSplit split_among_gpus(const Topology& topology, const UsableCores& usable);

}  // namespace ddl::affinity
