#include "launcher/plan/dry_plan.h"

#include <algorithm>

#include "contract/environment.h"
#include "launcher/plan/placement.h"

namespace ddl::launcher {
namespace {

namespace env = contract::env;

NodeFacts unknown_facts() {
  NodeFacts facts;
  facts.hostname = kUnknownUntilLaunch;
  return facts;
}

// What make_launch_plan derives from facts that are not there yet.
void mark_unknown(NodeLaunch& node, bool is_known, bool master_is_known) {
  for (RankLaunch& rank : node.ranks) {
    rank.environment[env::kMasterPort] = kUnknownUntilLaunch;
    if (!master_is_known) rank.environment[env::kMasterAddr] = kUnknownUntilLaunch;
    const auto threads = rank.environment.find(env::kOmpNumThreads);
    if (!is_known && threads != rank.environment.end()) threads->second = kUnknownUntilLaunch;
  }
}

/// Of a node that was not asked, nothing is refused.
Result<std::vector<NodeBinding>> bind_known(const JobSpec& spec, const Placement& placement,
                                            const std::vector<NodeFacts>& facts,
                                            const std::vector<bool>& is_known,
                                            const Environment& head_environment, bool in_slurm) {
  Placement known;
  std::vector<NodeFacts> known_facts;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!is_known[i]) continue;
    known.nodes.push_back(placement.nodes[i]);
    known_facts.push_back(facts[i]);
  }
  auto bound = bind_nodes(spec, known, known_facts, head_environment, in_slurm);
  if (!bound) return fail(std::move(bound.error()));
  std::vector<NodeBinding> bindings(facts.size());
  auto next = bound->begin();
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (is_known[i]) bindings[i] = std::move(*next++);
  }
  return bindings;
}

}  // namespace

Result<DryPlan> make_dry_plan(const JobSpec& spec, const Allocation& allocation,
                              const std::vector<std::optional<NodeFacts>>& known, const NodeFacts& here,
                              const Environment& head_environment) {
  std::vector<int> slots;
  for (std::size_t i = 0; i < allocation.nodes.size(); ++i)
    slots.push_back(allocation.nodes[i].slots.value_or(known[i] ? known[i]->slots : here.slots));
  const auto placement = place(spec, allocation, slots);
  if (!placement) return fail(placement.error());

  DryPlan plan;
  plan.assumed_slots = here.slots;
  plan.hosts_from = allocation.origin;
  std::vector<NodeFacts> facts;
  std::vector<bool> is_known;
  for (const PlacedNode& placed : placement->nodes) {
    const std::optional<NodeFacts>& own = known[placed.allocated];
    is_known.push_back(own.has_value());
    facts.push_back(own ? *own : unknown_facts());
    const bool has_slots = allocation.nodes[placed.allocated].slots || own;
    plan.slots.push_back(has_slots ? std::optional<int>(slots[placed.allocated]) : std::nullopt);
  }
  const bool in_slurm = allocation.slurm.has_value();
  auto bindings = bind_known(spec, *placement, facts, is_known, head_environment, in_slurm);
  if (!bindings) return fail(bindings.error());
  plan.bindings = *std::move(bindings);
  plan.launch =
      make_launch_plan(spec, *placement, facts, head_environment, "ddlrun", plan.bindings, in_slurm);
  // Rank 0's host has its address from all of them.
  const bool master_is_known = std::find(is_known.begin(), is_known.end(), false) == is_known.end();
  for (std::size_t i = 0; i < plan.launch.nodes.size(); ++i)
    mark_unknown(plan.launch.nodes[i], is_known[i], master_is_known);
  plan.asked_all = std::find(known.begin(), known.end(), std::nullopt) == known.end();
  return plan;
}

}  // namespace ddl::launcher
