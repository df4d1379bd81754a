// topology + policy + number of ranks -> plan. A pure function.
#pragma once

#include "affinity/plan/binding_plan.h"
#include "affinity/plan/binding_policy.h"
#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

/// Where local_ranks ranks of a node run. No rank gets a CPU that the job may not use, an empty set, or a CPU of another
/// one unless the policy allows that. Error kInvalidArgument says what there is too little of, or which option asks for
/// what the node does not have.
Result<BindingPlan> plan_binding(const Topology& topology, const BindingPolicy& policy, int local_ranks);

}  // namespace ddl::affinity
