// Ranks by GPU: each has GPUs, and cores near to them.
#pragma once

#include "affinity/plan/assigned_rank.h"
#include "affinity/plan/binding_policy.h"
#include "affinity/plan/usable_cores.h"
#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

Result<Assignment> assign_by_gpu(const Topology& topology, const BindingPolicy& policy,
                                 const UsableCores& usable, int local_ranks);

/// The adapter nearest to a GPU among those at least half as fast as the fastest: behind the same PCI switch, else on its NUMA node, else in its package; among equals, the
/// i-th of the GPUs that have the same choice has the i-th. "" where all are as near as each other by none of these.
std::vector<std::string> nics_of_gpus(const Topology& topology);

}  // namespace ddl::affinity
