// Prints the topology of a node, with the ranks of a plan if there is one: as text, JSON or an SVG picture
// (topology_svg.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"

namespace ddl::affinity {

// The forms in which a node is printed.

enum class TopologyFormat : std::uint8_t { kText, kJson, kSvg };

/// "text", "json" or "svg".
std::optional<TopologyFormat> parse_topology_format(std::string_view text);

/// The node, with the ranks of the plan if it has some, as whole lines.
std::string format_topology(const Topology& topology, const BindingPlan& plan, TopologyFormat format);

// A node and its ranks as lines for a terminal.

/// "this machine: 64 cores in 128 CPUs, 4 NUMA nodes, 8 GPUs", and a line end.
std::string summary_line(const Topology& topology);
/// plan may have no ranks.
std::string topology_text(const Topology& topology, const BindingPlan& plan);

// A picture of a node with its ranks in colour.

/// An SVG file. plan may have no ranks. People with colour blindness can distinguish the colours as well; each core
/// shows its rank.
std::string topology_svg(const Topology& topology, const BindingPlan& plan);

}  // namespace ddl::affinity
