#include "launcher/plan/launch_plan.h"

#include "launcher/output/credit.h"

namespace ddl::launcher {

LaunchPlan make_launch_plan(const JobSpec& spec, const Placement& placement,
                            const std::vector<NodeFacts>& facts, const Environment& head_environment,
                            const std::string& job_id) {
  DDL_CHECK(facts.size() == placement.nodes.size() && !facts.empty(),
            std::to_string(facts.size()) + " facts");
  NodeLaunch common;
  common.job_id = job_id;
  common.size = static_cast<int>(placement.ranks.size());
  for (const PlacedNode& node : placement.nodes) {
    common.node_names.push_back(node.name);
    common.node_ranks.push_back(node.ranks);
  }
  common.command = spec.command;
  common.workdir = spec.workdir;
  common.common_environment = common_environment(head_environment, spec.exports);
  common.kill_grace_seconds = spec.kill_grace_seconds;
  common.common_environment["PWD"] = spec.workdir;  // not where ddlrun was typed
  // One rank without a tag needs no line of its own kept whole: its bytes are passed on as they come.
  common.split_lines = common.size > 1 || spec.tag_output || spec.timestamp_output;
  common.output_window = static_cast<int>(output_window(common.size));

  LaunchPlan plan;
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    NodeLaunch node = common;
    node.node_index = static_cast<int>(i);
    for (const int rank : placement.nodes[i].ranks) {
      const RankPlacement& placed = placement.ranks[static_cast<std::size_t>(rank)];
      RankLaunch launch;
      launch.rank = rank;
      launch.local_rank = placed.local_rank;
      launch.reads_stdin =
          spec.stdin_target == StdinTarget::kAll || (spec.stdin_target == StdinTarget::kRank0 && rank == 0);
      launch.environment = rank_environment(placed, common.size, facts[i], facts[0], node.common_environment);
      node.ranks.push_back(std::move(launch));
    }
    plan.nodes.push_back(std::move(node));
  }
  return plan;
}

}  // namespace ddl::launcher
