#include "cli/plan_json.h"

#include <nlohmann/json.hpp>

#include "cli/environment_change.h"
#include "contract/version.h"

namespace ddl::cli {

using launcher::Environment;
using launcher::NodeLaunch;
using launcher::RankLaunch;
using Json = nlohmann::ordered_json;

namespace {

const char* name_of(launcher::StdinTarget target) {
  switch (target) {
    case launcher::StdinTarget::kRank0: return "0";
    case launcher::StdinTarget::kAll: return "all";
    case launcher::StdinTarget::kNone: return "none";
  }
  return "unknown";
}

Json environment_json(const Environment& environment) {
  Json json = Json::object();
  for (const auto& [name, value] : environment) {
    json[name] = value == launcher::kUnknownUntilLaunch ? Json(nullptr) : Json(value);
  }
  return json;
}

}  // namespace

std::string plan_json(const launcher::DryPlan& plan, const launcher::JobSpec& job,
                      const Environment& head_environment) {
  const EnvironmentChange change = environment_change(plan.launch, head_environment);
  Json json;
  json["ddlrun"] = contract::kVersion;
  json["kind"] = "launch_plan";
  json["size"] = change.own.size();
  json["command"] = job.command;
  json["workdir"] = job.workdir;
  json["stdin"] = name_of(job.stdin_target);
  json["tag_output"] = job.tag_output;
  json["timestamp_output"] = job.timestamp_output;
  json["output_directory"] = job.output_directory.empty() ? Json(nullptr) : Json(job.output_directory);
  json["timeout_seconds"] = job.timeout_seconds > 0 ? Json(job.timeout_seconds) : Json(nullptr);
  json["kill_grace_seconds"] = job.kill_grace_seconds;
  json["hosts_from"] = plan.hosts_from;
  json["hosts_asked"] = plan.asked_all;
  json["environment_set"] = environment_json(change.set);
  json["environment_removed"] = change.removed;
  json["nodes"] = Json::array();
  auto own = change.own.begin();
  for (std::size_t i = 0; i < plan.launch.nodes.size(); ++i) {
    const NodeLaunch& node = plan.launch.nodes[i];
    const auto index = static_cast<std::size_t>(node.node_index);
    Json ranks = Json::array();
    const std::vector<affinity::RankBinding>& bindings = plan.bindings[i].plan.ranks;
    for (const RankLaunch& rank : node.ranks) {
      const auto local = static_cast<std::size_t>(rank.local_rank);
      ranks.push_back(Json{{"rank", rank.rank},
                           {"local_rank", rank.local_rank},
                           {"reads_stdin", rank.reads_stdin},
                           {"cpus", rank.cpus.is_empty() ? Json(nullptr) : Json(rank.cpus.list())},
                           {"memory_nodes", rank.memory_nodes},
                           {"why", local < bindings.size() ? Json(bindings[local].why) : Json(nullptr)},
                           {"environment", environment_json(*own++)}});
    }
    json["nodes"].push_back(Json{{"name", index < node.node_names.size() ? node.node_names[index] : ""},
                                 {"warnings", plan.bindings[i].plan.warnings},
                                 {"slots", plan.slots[i] ? Json(*plan.slots[i]) : Json(nullptr)},
                                 {"ranks", std::move(ranks)}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ddl::cli
