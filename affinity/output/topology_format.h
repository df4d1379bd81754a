// The forms in which a node is printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"

namespace ddl::affinity {

enum class TopologyFormat : std::uint8_t { kText, kJson, kSvg };

/// "text", "json" or "svg".
std::optional<TopologyFormat> parse_topology_format(std::string_view text);

/// The node, with the ranks of the plan if it has some, as whole lines.
std::string format_topology(const Topology& topology, const BindingPlan& plan, TopologyFormat format);

}  // namespace ddl::affinity
