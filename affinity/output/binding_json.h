// A plan for a script.
#pragma once

#include <string>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"

namespace ddl::affinity {

/// One line: the node's size, and for each rank what RankBinding has. docs/reference/ddlrun.md names the keys.
std::string binding_json(const Topology& topology, const BindingPlan& plan);

}  // namespace ddl::affinity
