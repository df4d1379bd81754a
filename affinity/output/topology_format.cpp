#include "affinity/output/topology_format.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "affinity/output/node_map.h"
#include "affinity/topology_json.h"
#include "base/text.h"
#include "contract/version.h"

namespace ddl::affinity {
namespace {

std::string ranks_text(const std::vector<int>& ranks) {
  if (ranks.empty()) return "";
  return (ranks.size() == 1 ? "  rank " : "  ranks ") + list_of_numbers(ranks);
}

/// "P core", "kind 3 core".
std::string core_noun(const CoreKind& kind) {
  const bool is_letter = kind.name == "P" || kind.name == "E";
  return is_letter ? kind.name + " core" : "kind " + kind.name + " core";
}

/// "8 P, 16 E".
std::string kinds_text(const Topology& topology) {
  std::vector<std::string> parts;
  for (int kind = 0; kind < std::ssize(topology.core_kinds); ++kind) {
    const auto count = std::count_if(topology.cores.begin(), topology.cores.end(),
                                     [&](const Core& core) { return core.kind == kind; });
    parts.push_back(fmt::format("{} {}", count, topology.core_kinds[kind].name));
  }
  return join(parts, ", ");
}

/// Cores of one kind in a row that the same ranks may run on.
std::string run_lines(const Topology& topology, const L3Map& l3, const std::string& indent) {
  std::string text;
  for (std::size_t i = 0; i < l3.cores.size();) {
    CpuSet cpus;
    const int kind = topology.cores[l3.cores[i].core].kind;
    std::size_t end = i;
    for (; end < l3.cores.size() && l3.cores[end].ranks == l3.cores[i].ranks &&
           topology.cores[l3.cores[end].core].kind == kind;
         ++end)
      cpus |= topology.cores[l3.cores[end].core].cpus;
    const std::string noun = topology.core_kinds.empty() ? "core" : core_noun(topology.core_kinds[kind]);
    text += fmt::format("{}{} with CPUs {}{}\n", indent, counted(end - i, noun), cpus.list(),
                        ranks_text(l3.cores[i].ranks));
    i = end;
  }
  return text;
}

std::string device_lines(const std::vector<DeviceMark>& devices, const std::string& indent) {
  std::string text;
  for (const DeviceMark& device : devices)
    text +=
        fmt::format("{}{}{}{}\n", indent, device.is_gpu ? "" : "NIC ", device.name, ranks_text(device.ranks));
  return text;
}

}  // namespace

std::string summary_line(const Topology& topology) {
  std::vector<std::string> parts{fmt::format(
      "{}{} in {}", counted(topology.cores.size(), "core"),
      topology.core_kinds.empty() ? "" : " (" + kinds_text(topology) + ")",
      counted(topology.allowed.count(), "CPU") + (topology.allowed == topology.complete ? "" : " allowed"))};
  if (topology.packages.size() > 1) parts.push_back(counted(topology.packages.size(), "package"));
  parts.push_back(counted(topology.numa_nodes.size(), "NUMA node"));
  if (!topology.l3s.empty()) parts.push_back(counted(topology.l3s.size(), "L3"));
  if (!topology.gpus.empty()) parts.push_back(counted(topology.gpus.size(), "GPU"));
  if (!topology.nics.empty()) parts.push_back(counted(topology.nics.size(), "NIC"));
  return fmt::format("{}{}: {}\n", topology.source, topology.board.empty() ? "" : " (" + topology.board + ")",
                     join(parts, ", "));
}

std::string topology_text(const Topology& topology, const BindingPlan& plan) {
  const NodeMap map = map_of(topology, plan);
  std::string text = summary_line(topology);
  for (const PackageMap& package : map.packages) {
    if (!package.name.empty()) text += package.name + "\n";
    for (const NumaMap& numa : package.numa_nodes) {
      text += "  " + numa.name + "\n";
      for (const L3Map& l3 : numa.l3s) {
        if (!l3.name.empty()) text += "    " + l3.name + "\n";
        text += run_lines(topology, l3, l3.name.empty() ? "    " : "      ");
      }
      text += device_lines(numa.devices, "    ");
    }
  }
  if (!map.elsewhere.empty()) text += "near no single NUMA node\n" + device_lines(map.elsewhere, "  ");
  for (const std::string& warning : plan.ranks.empty() ? topology.warnings : plan.warnings)
    text += "warning: " + warning + "\n";
  if (const std::string mixed = mixed_vendors(topology); plan.ranks.empty() && !mixed.empty())
    text += "warning: " + mixed + "\n";
  return text;
}

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
