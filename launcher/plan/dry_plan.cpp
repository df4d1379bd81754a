#include "launcher/plan/dry_plan.h"

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
void mark_unknown(NodeLaunch& node, bool is_here, bool master_is_known) {
  for (RankLaunch& rank : node.ranks) {
    rank.environment[env::kMasterPort] = kUnknownUntilLaunch;
    if (!master_is_known) rank.environment[env::kMasterAddr] = kUnknownUntilLaunch;
    const auto threads = rank.environment.find(env::kOmpNumThreads);
    if (!is_here && threads != rank.environment.end()) threads->second = kUnknownUntilLaunch;
  }
}

}  // namespace

Result<DryPlan> make_dry_plan(const JobSpec& spec, const Allocation& allocation, const NodeFacts& here,
                              const Environment& head_environment) {
  std::vector<int> slots;
  for (const AllocatedNode& node : allocation.nodes) slots.push_back(node.slots.value_or(here.slots));
  const auto placement = place(spec, allocation, slots);
  if (!placement) return fail(placement.error());

  DryPlan plan;
  plan.assumed_slots = here.slots;
  plan.hosts_from = allocation.origin;
  std::vector<NodeFacts> facts;
  std::vector<bool> is_here;
  for (const PlacedNode& placed : placement->nodes) {
    const AllocatedNode& node = allocation.nodes[placed.allocated];
    is_here.push_back(is_this_machine(node, here.hostname));
    facts.push_back(is_here.back() ? here : unknown_facts());
    plan.slots.push_back(node.slots || !is_here.back() ? node.slots : std::optional<int>(here.slots));
  }
  const auto bindings = bind_nodes(spec, *placement, facts, head_environment);
  if (!bindings) return fail(bindings.error());
  plan.launch = make_launch_plan(spec, *placement, facts, head_environment, "ddlrun", *bindings);
  const bool master_is_known = placement->nodes.size() == 1 && is_here.front();
  for (std::size_t i = 0; i < plan.launch.nodes.size(); ++i) {
    mark_unknown(plan.launch.nodes[i], is_here[i], master_is_known);
  }
  return plan;
}

}  // namespace ddl::launcher
