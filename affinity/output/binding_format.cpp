#include "affinity/output/binding_format.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "affinity/output/topology_format.h"
#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"
#include "base/text.h"
#include "base/text_table.h"
#include "contract/version.h"

namespace ddl::affinity {

// A plan for a script.

/// One line: the node's size, and for each rank the fields of RankBinding. docs/reference/ddlrun.md names the keys.
std::string binding_json(const Topology& topology, const BindingPlan& plan);

// A plan for a person.

/// What the node is, a line for each rank, and the warnings.
std::string binding_table(const Topology& topology, const BindingPlan& plan);
/// The same with a sentence for each rank.
std::string binding_explanation(const Topology& topology, const BindingPlan& plan);

namespace {

template <class Text>
std::string joined(const BindingPlan& plan, const char* separator, Text text) {
  std::vector<std::string> parts;
  for (const RankBinding& rank : plan.ranks) parts.push_back(text(rank));
  return join(parts, separator);
}

std::string nodes_of(const RankBinding& rank) { return CpuSet::of(rank.numa_nodes).mask(); }

}  // namespace

std::string as_map_cpu(const BindingPlan& plan) {
  return "map_cpu:" +
         joined(plan, ",", [](const RankBinding& rank) { return std::to_string(rank.first_cpu); });
}

std::string as_mask_cpu(const BindingPlan& plan) {
  return "mask_cpu:" + joined(plan, ",", [](const RankBinding& rank) { return rank.cpus.mask(); });
}

std::string as_srun_options(const BindingPlan& plan) {
  int threads = 1;
  for (const RankBinding& rank : plan.ranks) threads = std::max(threads, rank.threads);
  // srun does not take --cpus-per-task over from the job since 22.05.
  return fmt::format("--cpu-bind={} --cpus-per-task={}", as_mask_cpu(plan), threads);
}

std::string as_taskset(const BindingPlan& plan) {
  return joined(plan, "\n", [](const RankBinding& rank) { return "taskset -c " + rank.cpus.list(); });
}

std::string as_hwloc_bind(const BindingPlan& plan) {
  return joined(plan, "\n", [&](const RankBinding& rank) {
    const std::string memory = plan.binds_memory ? " --membind nodeset:" + nodes_of(rank) : "";
    return "hwloc-bind --cpubind " + rank.cpus.mask() + memory;
  });
}

std::string as_omp_places(const BindingPlan& plan) {
  return joined(plan, "\n", [](const RankBinding& rank) {
    std::vector<std::string> places;
    for (const int cpu : rank.cpus.cpus()) places.push_back(fmt::format("{{{}}}", cpu));
    return join(places, ",");
  });
}

std::string as_rankfile(const Topology& topology, const BindingPlan& plan, const std::string& host,
                        int first_rank) {
  const std::vector<NumberedCore> cores = numbered_cores(topology);
  return joined(plan, "\n", [&](const RankBinding& rank) {
    std::vector<int> indices;
    for (int core = 0; core < std::ssize(cores); ++core) {
      if (cores[core].cpus.intersects(rank.cpus)) indices.push_back(core);
    }
    return fmt::format("rank {}={} slot={}", first_rank + rank.local_rank, host, CpuSet::of(indices).list());
  });
}

namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json gpus_json(const RankBinding& rank) {
  Json json = Json::array();
  for (const AssignedGpu& gpu : rank.gpus) {
    json.push_back(Json{{"index", gpu.index},
                        {"vendor", name_of(gpu.vendor)},
                        {"bus_id", text_or_null(gpu.bus_id)},
                        {"uuid", text_or_null(gpu.uuid)}});
  }
  return json;
}

Json rank_json(const RankBinding& rank) {
  return Json{{"local_rank", rank.local_rank}, {"cpus", rank.cpus.list()}, {"mask", rank.cpus.mask()},
              {"first_cpu", rank.first_cpu},   {"threads", rank.threads},  {"numa_nodes", rank.numa_nodes},
              {"gpus", gpus_json(rank)},       {"nics", rank.nics},        {"why", rank.why}};
}

}  // namespace

std::string binding_json(const Topology& topology, const BindingPlan& plan) {
  Json json;
  json["ddlrun"] = contract::kVersion;
  json["kind"] = "binding";
  json["topology"] = topology.source;
  json["board"] = text_or_null(topology.board);
  json["allowed_cpus"] = topology.allowed.list();
  json["cores"] = topology.cores.size();
  json["binds_memory"] = plan.binds_memory;
  json["warnings"] = plan.warnings;
  json["ranks"] = Json::array();
  for (const RankBinding& rank : plan.ranks) json["ranks"].push_back(rank_json(rank));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

std::string numbers(const std::vector<int>& all) { return CpuSet::of(all).list(); }

/// "8", or with several kinds of cores "8 (3 P, 5 E)".
std::string cores_of(const Topology& topology, const RankBinding& rank) {
  std::vector<std::string> parts;
  for (int kind = 0; kind < std::ssize(topology.core_kinds); ++kind) {
    const auto count = std::count_if(topology.cores.begin(), topology.cores.end(), [&](const Core& core) {
      return core.kind == kind && core.cpus.intersects(rank.cpus);
    });
    if (count > 0) parts.push_back(fmt::format("{} {}", count, topology.core_kinds[kind].name));
  }
  return std::to_string(rank.threads) + (parts.empty() ? "" : " (" + join(parts, ", ") + ")");
}

std::string gpus_of(const RankBinding& rank) {
  std::vector<std::string> names;
  for (const AssignedGpu& gpu : rank.gpus)
    names.push_back(fmt::format("{}{}", gpu.index, gpu.bus_id.empty() ? "" : " (" + gpu.bus_id + ")"));
  return join(names, ", ");
}

std::string warning_lines(const BindingPlan& plan) {
  std::string text;
  for (const std::string& warning : plan.warnings) text += "warning: " + warning + "\n";
  return text;
}

}  // namespace

std::string binding_table(const Topology& topology, const BindingPlan& plan) {
  std::string text = summary_line(topology);
  if (plan.ranks.empty()) return text + "ranks are bound to nothing\n" + warning_lines(plan);
  // A heading without a value below it is omitted.
  const auto heading = [&plan](const char* name, auto has_value) {
    return std::any_of(plan.ranks.begin(), plan.ranks.end(), has_value) ? name : "";
  };
  TextTable table;
  table.add({"rank", heading("CPUs", [](const RankBinding& rank) { return !rank.cpus.is_empty(); }), "cores",
             heading("NUMA", [](const RankBinding& rank) { return !rank.numa_nodes.empty(); }),
             heading("GPU", [](const RankBinding& rank) { return !rank.gpus.empty(); }),
             heading("NIC", [](const RankBinding& rank) { return !rank.nics.empty(); })});
  for (const RankBinding& rank : plan.ranks) {
    table.add({std::to_string(rank.local_rank), rank.cpus.list(), cores_of(topology, rank),
               numbers(rank.numa_nodes), gpus_of(rank), join(rank.nics, ",")});
  }
  text += "\n" + table.text();
  const std::string warnings = warning_lines(plan);
  return warnings.empty() ? text : text + "\n" + warnings;
}

std::string binding_explanation(const Topology& topology, const BindingPlan& plan) {
  std::string text = summary_line(topology);
  if (plan.ranks.empty()) text += "ranks are bound to nothing, as --bind-to none says\n";
  for (const RankBinding& rank : plan.ranks) {
    const char* const what = rank.cpus.count() == 1 ? "CPU" : "CPUs";
    text += fmt::format("rank {}: {} {}{}: {}.\n", rank.local_rank, what, rank.cpus.list(),
                        rank.nics.empty() ? "" : " and " + join(rank.nics, ","), rank.why);
  }
  return text + warning_lines(plan);
}

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
    case BindingFormat::kRankfile: return as_rankfile(topology, plan, "localhost", 0) + "\n";
    case BindingFormat::kJson: return binding_json(topology, plan);
    case BindingFormat::kSvg: return topology_svg(topology, plan);
  }
  return "";
}

}  // namespace ddl::affinity
