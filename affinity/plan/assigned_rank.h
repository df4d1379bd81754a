// What a local rank is given, before it is said in CPUs.
#pragma once

#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "affinity/plan/binding_policy.h"
#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

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

/// Leaves each rank the first policy.cores_per_rank of its cores; an error that names the rank that has fewer.
Status keep_cores(Assignment& assignment, const BindingPolicy& policy, const Topology& topology);

/// Where ranks have cores in common: a warning if policy.oversubscribe allows it, else an error that names two of them.
Status allow_sharing(Assignment& assignment, const BindingPolicy& policy, const Topology& topology);

}  // namespace ddl::affinity
