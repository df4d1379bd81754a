#include "affinity/output/binding_format.h"

#include <array>
#include <utility>

#include "affinity/output/binding_json.h"
#include "affinity/output/binding_table.h"
#include "affinity/output/binding_text.h"
#include "affinity/output/topology_svg.h"

namespace ddl::affinity {
namespace {

constexpr std::array<std::pair<std::string_view, BindingFormat>, 10> kFormatNames{{
    {"table", BindingFormat::kTable},
    {"map_cpu", BindingFormat::kMapCpu},
    {"mask_cpu", BindingFormat::kMaskCpu},
    {"srun", BindingFormat::kSrun},
    {"taskset", BindingFormat::kTaskset},
    {"hwloc", BindingFormat::kHwloc},
    {"omp_places", BindingFormat::kOmpPlaces},
    {"rankfile", BindingFormat::kRankfile},
    {"json", BindingFormat::kJson},
    {"svg", BindingFormat::kSvg},
}};

}  // namespace

std::optional<BindingFormat> parse_binding_format(std::string_view text) {
  for (const auto& [name, format] : kFormatNames) {
    if (text == name) return format;
  }
  return std::nullopt;
}

std::string format_binding(const Topology& topology, const BindingPlan& plan, BindingFormat format) {
  switch (format) {
    case BindingFormat::kTable: return binding_table(topology, plan);
    case BindingFormat::kExplanation: return binding_explanation(topology, plan);
    case BindingFormat::kMapCpu: return as_map_cpu(plan) + "\n";
    case BindingFormat::kMaskCpu: return as_mask_cpu(plan) + "\n";
    case BindingFormat::kSrun: return as_srun_options(plan) + "\n";
    case BindingFormat::kTaskset: return as_taskset(plan) + "\n";
    case BindingFormat::kHwloc: return as_hwloc_bind(plan) + "\n";
    case BindingFormat::kOmpPlaces: return as_omp_places(plan) + "\n";
    case BindingFormat::kRankfile: return as_rankfile(plan, "localhost", 0) + "\n";
    case BindingFormat::kJson: return binding_json(topology, plan);
    case BindingFormat::kSvg: return topology_svg(topology, plan);
  }
  return "";
}

}  // namespace ddl::affinity
