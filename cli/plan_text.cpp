#include "cli/plan_text.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/environment_change.h"
#include "cli/rank_ranges.h"

namespace ddl::cli {

using launcher::DryPlan;
using launcher::Environment;
using launcher::JobSpec;
using launcher::NodeLaunch;
using launcher::RankLaunch;

namespace {

std::string field(std::string_view name, std::string_view value) {
  return fmt::format("  {:<12}{}\n", name, value);
}

std::string command_line(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(shell_quote(word));
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

std::string output_text(const JobSpec& job) {
  std::string text = job.tag_output ? "lines tagged with their rank" : "lines as they are";
  if (job.timestamp_output) text += ", with the time";
  if (!job.output_directory.empty()) text += "; also in " + job.output_directory + "/rank.R/{stdout,stderr}";
  return text;
}

std::string hosts_text(const DryPlan& plan) {
  const auto unknown = std::count(plan.slots.begin(), plan.slots.end(), std::nullopt);
  std::string text = plan.hosts_from;
  if (unknown == 0) return text;
  return text + fmt::format("; the slots of {} are unknown until launch, and taken to be {} each, as here",
                            counted(unknown, "host"), plan.assumed_slots);
}

std::string asked_text(const DryPlan& plan) {
  return plan.asked_all ? "Nothing was started; every host was asked what it has."
                        : "Nothing was started and no node was asked.";
}

/// What is to be known of how a node's ranks are bound: warnings, or why they are not.
std::string binding_remarks(const launcher::NodeBinding& binding) {
  std::string text;
  for (const std::string& warning : binding.plan.warnings) text += "    warning: " + warning + "\n";
  if (!binding.unbound_because.empty()) text += "    not bound: " + binding.unbound_because + "\n";
  return text;
}

std::string assignment(const std::string& name, const std::string& value) {
  if (value == launcher::kUnknownUntilLaunch) return name + " " + value;
  return name + "=" + shell_quote(value);
}

}  // namespace

std::string plan_text(const DryPlan& plan, const JobSpec& job, const Environment& head_environment) {
  const auto rank_count =
      std::accumulate(plan.launch.nodes.begin(), plan.launch.nodes.end(), std::size_t{0},
                      [](std::size_t sum, const NodeLaunch& node) { return sum + node.ranks.size(); });
  std::string text = fmt::format(
      "ddlrun would start {} on {}. {}\n\n", counted(static_cast<std::int64_t>(rank_count), "rank"),
      counted(static_cast<std::int64_t>(plan.launch.nodes.size()), "node"), asked_text(plan));
  text += field("hosts", hosts_text(plan));
  text += field("command", command_line(job.command));
  text += field("workdir", job.workdir);
  text += field("stdin", stdin_text(job.stdin_target));
  text += field("output", output_text(job));
  if (job.timeout_seconds > 0) text += field("timeout", fmt::format("{} s", job.timeout_seconds));
  text += field("kill grace", fmt::format("{} s", job.kill_grace_seconds));

  const EnvironmentChange change = environment_change(plan.launch, head_environment);
  text += "\nEvery rank inherits ddlrun's environment";
  if (!change.removed.empty()) text += " without " + join(change.removed, ", ");
  text += ", finds a PMIx server in PMIX_*, and has\n";
  for (const auto& [name, value] : change.set) text += "    " + assignment(name, value) + "\n";

  auto own = change.own.begin();
  for (std::size_t i = 0; i < plan.launch.nodes.size(); ++i) {
    const NodeLaunch& node = plan.launch.nodes[i];
    std::vector<int> ranks;
    for (const RankLaunch& rank : node.ranks) ranks.push_back(rank.rank);
    const auto index = static_cast<std::size_t>(node.node_index);
    text += fmt::format("\nNode {}, {} ({}): {}\n", node.node_index,
                        index < node.node_names.size() ? node.node_names[index] : "?",
                        plan.slots[i] ? counted(*plan.slots[i], "slot") : "slots unknown until launch",
                        ranks_text(ranks));
    const std::vector<affinity::RankBinding>& bindings = plan.bindings[i].plan.ranks;
    text += binding_remarks(plan.bindings[i]);
    for (const RankLaunch& rank : node.ranks) {
      std::vector<std::string> assignments;
      if (!rank.cpus.is_empty())
        assignments.push_back((rank.cpus.count() == 1 ? "CPU " : "CPUs ") + rank.cpus.list() + ";");
      for (const auto& [name, value] : *own) assignments.push_back(assignment(name, value));
      ++own;
      if (!assignments.empty()) text += fmt::format("    rank {}: {}\n", rank.rank, join(assignments, " "));
      const auto local = static_cast<std::size_t>(rank.local_rank);
      if (local < bindings.size()) text += "        why: " + bindings[local].why + "\n";
    }
  }
  return text;
}

}  // namespace ddl::cli
