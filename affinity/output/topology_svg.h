// A picture of a node with its ranks in colour.
#pragma once

#include <string>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"

namespace ddl::affinity {

/// An SVG file. plan may be without ranks. Colours are told apart also by those who see fewer; the rank stands in each core.
std::string topology_svg(const Topology& topology, const BindingPlan& plan);

}  // namespace ddl::affinity
