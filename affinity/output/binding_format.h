// The forms in which a plan is printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"

namespace ddl::affinity {

enum class BindingFormat : std::uint8_t {
  kTable,
  kExplanation,
  kMapCpu,
  kMaskCpu,
  kSrun,
  kTaskset,
  kHwloc,
  kOmpPlaces,
  kRankfile,
  kJson,
  kSvg,
};

/// "map_cpu" and so on; nothing for another word. --explain-bind is the only way to kExplanation.
std::optional<BindingFormat> parse_binding_format(std::string_view text);

/// The plan, which is of this topology, as whole lines.
std::string format_binding(const Topology& topology, const BindingPlan& plan, BindingFormat format);

}  // namespace ddl::affinity
