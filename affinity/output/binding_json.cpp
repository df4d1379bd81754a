#include "affinity/output/binding_json.h"

#include <nlohmann/json.hpp>

#include "contract/version.h"

namespace ddl::affinity {
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

}  // namespace ddl::affinity
