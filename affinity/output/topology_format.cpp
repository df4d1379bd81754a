#include "affinity/output/topology_format.h"

#include <nlohmann/json.hpp>

#include "affinity/output/topology_svg.h"
#include "affinity/output/topology_text.h"
#include "affinity/topology_fields.h"
#include "contract/version.h"

namespace ddl::affinity {

std::optional<TopologyFormat> parse_topology_format(std::string_view text) {
  if (text == "text") return TopologyFormat::kText;
  if (text == "json") return TopologyFormat::kJson;
  if (text == "svg") return TopologyFormat::kSvg;
  return std::nullopt;
}

std::string format_topology(const Topology& topology, const BindingPlan& plan, TopologyFormat format) {
  switch (format) {
    case TopologyFormat::kText: return topology_text(topology, plan);
    case TopologyFormat::kSvg: return topology_svg(topology, plan);
    case TopologyFormat::kJson: break;
  }
  nlohmann::ordered_json json;
  json["ddlrun"] = contract::kVersion;
  json["kind"] = "topology";
  const nlohmann::json fields = topology;
  for (const auto& [name, value] : fields.items()) json[name] = value;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ddl::affinity
