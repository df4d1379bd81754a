#include "cli/reports/plan_report.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable_text.h"
#include "base/text.h"
#include "cli/reports/job_report.h"
#include "contract/version.h"
#include "launcher/plan/framework_environment.h"

namespace ddl::cli {

using launcher::DryPlan;
using launcher::JobSpec;
using launcher::NodeLaunch;
using launcher::RankLaunch;
using Json = nlohmann::ordered_json;

EnvironmentChange environment_change(const launcher::LaunchPlan& plan, const Environment& head_environment) {
  // The environ(7) of every rank, without the variables of PMIx.
  std::vector<Environment> ranks;
  for (const launcher::NodeLaunch& node : plan.nodes) {
    for (const launcher::RankLaunch& rank : node.ranks)
      ranks.push_back(launcher::environment_of(plan.job, node, rank));
  }

  // Counts for each variable the ranks that have it, and whether their values are equal. Linear, because there may be
  // many thousands of ranks.
  struct Use {
    const std::string* value;
    std::size_t ranks = 0;
    bool same = true;
  };
  std::map<std::string, Use> uses;
  for (const Environment& rank : ranks) {
    for (const auto& [name, value] : rank) {
      Use& use = uses.try_emplace(name, Use{&value}).first->second;
      ++use.ranks;
      if (*use.value != value) use.same = false;
    }
  }

  EnvironmentChange change;
  change.own.resize(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const auto& [name, value] : ranks[i]) {
      const Use& use = uses.at(name);
      if (!use.same || use.ranks < ranks.size()) change.own[i].emplace(name, value);
    }
  }
  for (const auto& [name, use] : uses) {
    if (!use.same || use.ranks < ranks.size()) continue;
    const auto head = head_environment.find(name);
    if (head == head_environment.end() || head->second != *use.value) change.set.emplace(name, *use.value);
  }
  for (const auto& [name, value] : head_environment) {
    if (!uses.contains(name)) change.removed.push_back(name);
  }
  return change;
}

namespace {

std::string field(std::string_view name, std::string_view value) {
  return fmt::format("  {:<12}{}\n", name, value);
}

/// shell_quote(), but a word that would act on the terminal is in bash's form for such words: $'\x1b[31m'.
std::string visible_quote(std::string_view word) {
  if (printable_line(word) == word) return shell_quote(word);
  std::string quoted = "$'";
  while (!word.empty()) {
    const std::size_t length = utf8_character_length(word);
    const std::string_view character = word.substr(0, std::max<std::size_t>(length, 1));
    word.remove_prefix(character.size());
    const bool is_safe = length > 0 && (character == "\t" || printable_line(character) == character);
    if (!is_safe) {
      for (const char byte : character) quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    } else {
      if (character == "'" || character == "\\") quoted += '\\';
      quoted += character;
    }
  }
  return quoted + "'";
}

std::string command_line(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(visible_quote(word));
  return join(words, " ");
}

std::string stdin_text(launcher::StdinTarget target) {
  switch (target) {
    case launcher::StdinTarget::kRank0: return "read by rank 0; the others read /dev/null";
    case launcher::StdinTarget::kAll: return "every rank reads all of it";
    case launcher::StdinTarget::kNone: return "every rank reads /dev/null";
  }
  return "";
}

/// What may change while the job runs.
std::string elastic_text(const launcher::ElasticSpec& elastic) {
  const bool continues = elastic.mode == launcher::ElasticMode::kContinue;
  std::string text = continues ? "ranks go on when others fail: " : "all ranks start again: ";
  if (!continues && elastic.max_restarts == 0) text = "all ranks start again when a host is lost: ";
  if (!continues && elastic.max_restarts > 0)
    text += fmt::format("at most {} after failures of ranks; ", counted(elastic.max_restarts, "time"));
  text += fmt::format("{} at least", counted(elastic.min_ranks, "rank"));
  if (elastic.max_ranks < launcher::kMaxRanks) text += fmt::format(", {} at most", elastic.max_ranks);
  if (elastic.spares > 0) text += fmt::format("; {} in reserve", elastic.spares);
  if (elastic.state_directory.empty()) return text;
  text += "; the state goes to " + elastic.state_directory;
  if (elastic.state_interval > 0)
    text += fmt::format(" after every {}", counted(elastic.state_interval, "commit"));
  return text;
}

/// null: the job is not elastic.
Json elastic_json(const launcher::ElasticSpec& elastic) {
  using launcher::ElasticMode;
  if (elastic.mode == ElasticMode::kOff) return nullptr;
  return {
      {"mode", elastic.mode == ElasticMode::kContinue ? "continue" : "restart"},
      {"min_ranks", elastic.min_ranks},
      {"max_ranks", elastic.max_ranks < launcher::kMaxRanks ? Json(elastic.max_ranks) : Json(nullptr)},
      {"spares", elastic.spares},
      {"max_restarts", elastic.max_restarts},
      {"state_directory", elastic.state_directory.empty() ? Json(nullptr) : Json(elastic.state_directory)}};
}

std::string output_text(const JobSpec& job) {
  std::string text = job.tag_output ? "lines tagged with their rank" : "lines unchanged";
  if (job.timestamp_output) text += ", with the time";
  if (!job.output_directory.empty()) text += "; also in " + job.output_directory + "/rank.R/{stdout,stderr}";
  return text;
}

std::string hosts_text(const DryPlan& plan) {
  const auto unknown = std::count(plan.slots.begin(), plan.slots.end(), std::nullopt);
  std::string text = plan.hosts_from;
  if (unknown > 0)
    text += fmt::format("; the slots of {} are unknown until launch; assumed: {} each, as on this machine",
                        counted(unknown, "host"), plan.assumed_slots);
  if (plan.unknown_objects > 0)
    text += fmt::format("; what --map-by counts on {} is unknown until launch; assumed: as on this machine",
                        counted(plan.unknown_objects, "host"));
  return text;
}

std::string asked_text(const DryPlan& plan) {
  return plan.asked_all ? "Nothing was started; every host was asked what it has."
                        : "Nothing was started and no host was asked.";
}

/// Warnings about the binding of a node's ranks, or why they are not bound.
std::string binding_remarks(const launcher::NodeBinding& binding) {
  std::string text;
  for (const std::string& warning : binding.plan.warnings) text += "    warning: " + warning + "\n";
  if (!binding.unbound_because.empty()) text += "    not bound: " + binding.unbound_because + "\n";
  return text;
}

std::string assignment(const std::string& name, const std::string& value) {
  if (value == launcher::kUnknownUntilLaunch) return name + " " + value;
  return name + "=" + visible_quote(value);
}

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

/// The variables of each framework that any rank has: "torch", its names.
std::vector<std::pair<std::string, std::vector<std::string>>> frameworks_in(const EnvironmentChange& change) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
  for (const launcher::FrameworkVariables& one : launcher::framework_variables()) {
    std::vector<std::string> names;
    for (const auto& list : {one.set, one.other, one.settings}) {
      for (const std::string_view name : list) {
        const auto has = [&](const Environment& environment) {
          return environment.contains(std::string(name));
        };
        if (has(change.set) || std::any_of(change.own.begin(), change.own.end(), has))
          names.emplace_back(name);
      }
    }
    if (!names.empty()) found.emplace_back(one.framework, std::move(names));
  }
  return found;
}

/// A rank's own variables: those of each framework, and then the others.
std::vector<std::string> own_assignments(const Environment& own) {
  std::map<std::string_view, std::vector<std::string>> of_frameworks;
  std::vector<std::string> texts, others;
  for (const auto& [name, value] : own) {
    const std::string_view framework = launcher::framework_of(name);
    (framework.empty() ? others : of_frameworks[framework]).push_back(assignment(name, value));
  }
  for (const auto& [framework, assignments] : of_frameworks)
    texts.push_back(join(assignments, " ") + fmt::format(" ({})", framework));
  texts.insert(texts.end(), others.begin(), others.end());
  return texts;
}

/// The origins of the defaults that all ranks have, by the names of the variables. Slurm may replace one.
Environment origins_of(const std::vector<launcher::DefaultVariable>& defaults, const Environment& set) {
  Environment origins;
  for (const launcher::DefaultVariable& one : defaults) {
    const auto found = set.find(one.name);
    if (found != set.end() && found->second == one.value) origins[one.name] = one.origin;
  }
  return origins;
}

}  // namespace

std::string plan_text(const DryPlan& plan, const JobSpec& job, const Environment& head_environment,
                      const std::vector<launcher::DefaultVariable>& defaults) {
  const auto num_ranks =
      std::accumulate(plan.launch.nodes.begin(), plan.launch.nodes.end(), std::size_t{0},
                      [](std::size_t sum, const NodeLaunch& node) { return sum + node.ranks.size(); });
  std::string text = fmt::format("ddlrun would start {} on {}. {}\n\n", counted(num_ranks, "rank"),
                                 counted(plan.launch.nodes.size(), "node"), asked_text(plan));
  text += field("hosts", hosts_text(plan));
  text += field("command", command_line(job.command));
  text += field("workdir", printable_line(job.workdir));
  if (job.verbose) text += field("shell", launcher::shell_attributes_text(job.shell));
  text += field("stdin", stdin_text(job.stdin_target));
  text += field("output", output_text(job));
  if (job.timeout_seconds > 0) text += field("timeout", fmt::format("{} s", job.timeout_seconds));
  text += field("kill grace", fmt::format("{} s", job.kill_grace_seconds));
  if (job.elastic.mode != launcher::ElasticMode::kOff) text += field("elastic", elastic_text(job.elastic));

  const EnvironmentChange change = environment_change(plan.launch, head_environment);
  text += "\nEvery rank inherits ddlrun's environment";
  if (!change.removed.empty()) text += " without " + join(change.removed, ", ");
  text += ", finds a PMIx server by PMIX_*, and gets\n";
  const Environment origins = origins_of(defaults, change.set);
  for (const auto& [name, value] : change.set) {
    const std::string origin =
        origins.contains(name) ? origins.at(name) : std::string(launcher::framework_of(name));
    text += "    " + assignment(name, value) + (origin.empty() ? "" : "  (" + origin + ")") + "\n";
  }

  auto own = change.own.begin();
  for (std::size_t i = 0; i < plan.launch.nodes.size(); ++i) {
    const NodeLaunch& node = plan.launch.nodes[i];
    std::vector<int> ranks;
    for (const RankLaunch& rank : node.ranks) ranks.push_back(rank.rank);
    const std::size_t index = node.node_index;
    text += fmt::format("\nNode {}, {} ({}): {}\n", node.node_index,
                        index < plan.launch.job.node_names.size() ? plan.launch.job.node_names[index] : "?",
                        plan.slots[i] ? counted(*plan.slots[i], "slot") : "slots unknown until launch",
                        launcher::ranks_text(ranks));
    const std::vector<affinity::RankBinding>& bindings = plan.bindings[i].plan.ranks;
    text += binding_remarks(plan.bindings[i]);
    for (const RankLaunch& rank : node.ranks) {
      std::vector<std::string> assignments;
      if (!rank.cpus.is_empty())
        assignments.push_back((rank.cpus.count() == 1 ? "CPU " : "CPUs ") + rank.cpus.list() + ";");
      for (const std::string& one : own_assignments(*own++)) assignments.push_back(one);
      if (!assignments.empty()) text += fmt::format("    rank {}: {}\n", rank.rank, join(assignments, " "));
      const std::size_t local = rank.local_rank;
      if (local < bindings.size()) text += "        why: " + bindings[local].why + "\n";
    }
  }
  return text;
}

std::string plan_json(const launcher::DryPlan& plan, const launcher::JobSpec& job,
                      const Environment& head_environment,
                      const std::vector<launcher::DefaultVariable>& defaults) {
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
  json["elastic"] = elastic_json(job.elastic);
  json["hosts_from"] = plan.hosts_from;
  json["hosts_asked"] = plan.asked_all;
  json["environment_set"] = environment_json(change.set);
  json["environment_origins"] = environment_json(origins_of(defaults, change.set));
  json["environment_removed"] = change.removed;
  json["environment_frameworks"] = Json::object();
  for (const auto& [framework, names] : frameworks_in(change))
    json["environment_frameworks"][framework] = names;
  json["nodes"] = Json::array();
  auto own = change.own.begin();
  for (std::size_t i = 0; i < plan.launch.nodes.size(); ++i) {
    const NodeLaunch& node = plan.launch.nodes[i];
    const std::size_t index = node.node_index;
    Json ranks = Json::array();
    const std::vector<affinity::RankBinding>& bindings = plan.bindings[i].plan.ranks;
    for (const RankLaunch& rank : node.ranks) {
      const std::size_t local = rank.local_rank;
      ranks.push_back(Json{{"rank", rank.rank},
                           {"local_rank", rank.local_rank},
                           {"reads_stdin", rank.reads_stdin},
                           {"cpus", rank.cpus.is_empty() ? Json(nullptr) : Json(rank.cpus.list())},
                           {"memory_nodes", rank.memory_nodes},
                           {"why", local < bindings.size() ? Json(bindings[local].why) : Json(nullptr)},
                           {"environment", environment_json(*own++)}});
    }
    json["nodes"].push_back(
        Json{{"name", index < plan.launch.job.node_names.size() ? plan.launch.job.node_names[index] : ""},
             {"warnings", plan.bindings[i].plan.warnings},
             {"slots", plan.slots[i] ? Json(*plan.slots[i]) : Json(nullptr)},
             {"ranks", std::move(ranks)}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string defaults_sentence(const std::vector<launcher::DefaultVariable>& defaults) {
  std::string text = "ranks also get ";
  for (std::size_t i = 0; i < defaults.size(); ++i) {
    const bool is_last = i + 1 == defaults.size();
    text += assignment(defaults[i].name, defaults[i].value);
    if (is_last || defaults[i].origin != defaults[i + 1].origin) text += " (" + defaults[i].origin + ")";
    if (!is_last) text += ", ";
  }
  return text;
}

}  // namespace ddl::cli
