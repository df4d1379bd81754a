// A plan for a person.
#pragma once

#include <string>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"

namespace ddl::affinity {

/// What the node is, a line for each rank, and the warnings.
std::string binding_table(const Topology& topology, const BindingPlan& plan);
/// The same with a sentence for each rank.
std::string binding_explanation(const Topology& topology, const BindingPlan& plan);

}  // namespace ddl::affinity
