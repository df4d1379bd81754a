// Ranks by CPU: each has domains of its own, or a part of one.
#pragma once

#include "affinity/plan/assigned_rank.h"
#include "affinity/plan/binding_policy.h"
#include "affinity/plan/usable_cores.h"
#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

/// BindTo::kAuto: by the widest domains of which there is one for each rank, so that ranks share as little cache as
/// possible, and the node is shared out to the last domain. With more ranks than cores, ranks have hardware threads of their
/// own for BindTo::kAuto and kPu, and with policy.smt.
Result<Assignment> assign_by_cpu(const Topology& topology, const BindingPolicy& policy,
                                 const UsableCores& usable, int local_ranks);

}  // namespace ddl::affinity
