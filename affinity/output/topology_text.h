// A node and its ranks as lines for a terminal.
#pragma once

#include <string>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"

namespace ddl::affinity {

/// "this machine: 64 cores in 128 CPUs, 4 NUMA nodes, 8 GPUs", and a line end.
std::string summary_line(const Topology& topology);
/// plan may be without ranks.
std::string topology_text(const Topology& topology, const BindingPlan& plan);

}  // namespace ddl::affinity
