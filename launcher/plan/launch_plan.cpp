#include "launcher/plan/launch_plan.h"

#include <algorithm>

#include "base/text.h"
#include "contract/environment.h"
#include "launcher/output/output_stream.h"
#include "launcher/plan/framework_environment.h"
#include "launcher/plan/placement.h"
#include "launcher/plan/rank_environment.h"
#include "timeline/event_ring.h"

namespace ddl::launcher {
namespace env = contract::env;

namespace {

void bind_rank(RankLaunch& launch, const NodeBinding& node, const Environment& common, Framework framework) {
  const auto local_rank = static_cast<std::size_t>(launch.local_rank);
  const affinity::RankBinding& binding = node.plan.ranks.at(local_rank);
  launch.cpus = binding.cpus;
  if (node.plan.binds_memory) launch.memory_nodes = binding.numa_nodes;
  for (const auto& [name, value] : binding_environment(binding, visible_gpus(node, local_rank), common))
    launch.environment[name] = value;
  if (!node.shares_view_of_gpus)
    launch.environment.merge(own_gpus_environment(framework, binding.gpus.size()));
}

/// The node's held ports that variables of its ranks' framework name. mpirun may start its ranks by a service, such as
/// slurmstepd: whether a server is theirs is not known.
std::vector<int> told_ports(const JobSpec& spec, const NodeFacts& facts, const NodeLaunch& node) {
  std::vector<int> told;
  if (spec.starts_mpirun) return told;
  const Framework framework = spec.framework;
  const auto add = [&](std::size_t index) {
    if (index < facts.held_ports.size()) told.push_back(facts.held_ports[index]);
  };
  const bool has_rank_0 = node.node_index == 0;
  if (has_rank_0 && (is_told(framework, "torch") || is_told(framework, "mxnet"))) add(0);
  if (has_rank_0 && is_told(framework, "jax")) add(1);
  for (std::size_t i = 0; i < ports_for_ranks(framework, node.ranks.size()); ++i) add(kPortsOfRank0 + i);
  return told;
}

/// Where the rendezvous is, the agent adds.
void add_gloo(NodeLaunch& node, const std::string& interface) {
  node.serves_gloo = true;
  Environment& environment = node.common_environment;
  for (const char* const name : {env::kHorovodController, env::kHorovodCpuOperations})
    environment.try_emplace(name, "gloo");
  if (!interface.empty()) environment.try_emplace(env::kHorovodGlooIface, interface);
}

/// A scheduler sets a variable for every vendor. If ranks are given GPUs by one of them, another would hide some of these
/// GPUs again.
void remove_inherited_visibility(NodeLaunch& node) {
  const std::vector<std::string> names = visible_device_variables();
  const bool has_gpus =
      !node.ranks.empty() && std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return node.ranks.front().environment.contains(name);
      });
  for (const std::string& name : names) {
    if (has_gpus) node.common_environment.erase(name);
  }
}

}  // namespace

LaunchPlan make_launch_plan(const JobSpec& spec, const Placement& placement,
                            const std::vector<NodeFacts>& facts, const Environment& head_environment,
                            const std::string& job_id, const std::vector<NodeBinding>& bindings,
                            const Scheduler& scheduler) {
  DDL_CHECK(facts.size() == placement.nodes.size() && !facts.empty(),
            std::to_string(facts.size()) + " facts");
  NodeLaunch common;
  common.job_id = job_id;
  common.num_ranks = static_cast<int>(placement.ranks.size());
  for (const PlacedNode& node : placement.nodes) {
    common.node_names.push_back(node.name);
    common.node_ranks.push_back(node.ranks);
  }
  common.command = spec.command;
  common.workdir = spec.workdir;
  common.shell = spec.shell;
  common.common_environment = common_environment(head_environment, spec.exports, spec.framework);
  common.login_variables = login_variables(spec.exports);
  common.strict_binding = spec.strict_bind;
  common.reports_bindings = spec.report_bindings;
  common.kill_grace_seconds = spec.kill_grace_seconds;
  common.stall_warning_seconds = spec.stall_warning_seconds;
  common.stall_shutdown_seconds = spec.stall_shutdown_seconds;
  if (!spec.timeline_file.empty())
    common.timeline_events = timeline::events_of_rank(spec.timeline_bytes, placement.ranks.size());
  if (!spec.network_interfaces.empty())
    common.common_environment[contract::env::kNetworkInterfaces] = join(spec.network_interfaces, ",");
  if (spec.verbose) {
    common.common_environment[contract::env::kReportStart] = "1";
    common.common_environment.try_emplace(contract::env::kVerbose, "1");
  }
  const SchedulerStep step{common.node_names, common.node_ranks};
  // They replace those of the step that ddlrun runs in.
  for (const auto& [name, value] : scheduler.step_variables(step)) common.common_environment[name] = value;
  common.common_environment["PWD"] = spec.workdir;  // ddlrun's own PWD may be another one
  // The output of a single rank without a tag need not be split into lines: its bytes are forwarded as they arrive.
  common.split_lines = common.num_ranks > 1 || spec.tag_output || spec.timestamp_output;
  common.output_window = static_cast<int>(output_window(common.num_ranks));

  FrameworkJob job{spec.framework,
                   common.num_ranks,
                   static_cast<int>(placement.nodes.size()),
                   job_id,
                   servers_of_rank_0(spec, placement, facts[0]),
                   scheduler.name(),
                   join(common.node_names, ","),
                   spec.roles};
  if (spec.framework == Framework::kTensorflow)
    job.tensorflow_configs = tensorflow_configs(spec.roles, rank_addresses(spec, placement, facts));
  const std::vector<std::string> hostnames = horovod_hostnames(placement, facts);
  LaunchPlan plan;
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    NodeLaunch node = common;
    node.node_index = static_cast<int>(i);
    node.common_environment =
        with_visible_devices(std::move(node.common_environment), facts[i], spec, scheduler);
    if (!facts[i].libddl.empty()) node.common_environment.try_emplace(env::kLibrary, facts[i].libddl);
    const std::string interface =
        is_told(spec.framework, "torch") ? gloo_interface(spec, placement, facts[i]) : "";
    if (!interface.empty()) {
      for (const char* const name : {env::kGlooSocketIfname, env::kTpSocketIfname})
        node.common_environment.try_emplace(name, interface);
    }
    if (spec.serves_gloo) add_gloo(node, connecting_interface(spec, placement, facts[i]));
    const FrameworkNode here{hostnames[i], node_address(spec, placement, i, facts[i])};
    for (const int rank : placement.nodes[i].ranks) {
      const RankPlacement& placed = placement.ranks[static_cast<std::size_t>(rank)];
      RankLaunch launch;
      launch.rank = rank;
      launch.local_rank = placed.local_rank;
      launch.reads_stdin =
          spec.stdin_target == StdinTarget::kAll || (spec.stdin_target == StdinTarget::kRank0 && rank == 0);
      launch.environment = framework_environment(job, placed, here);
      launch.environment.merge(thread_environment(placed, facts[i], node.common_environment));
      // Ranks that take no slots are not bound.
      if (i < bindings.size() && static_cast<std::size_t>(placed.local_rank) < bindings[i].plan.ranks.size())
        bind_rank(launch, bindings[i], node.common_environment, spec.framework);
      launch.environment.merge(
          scheduler.rank_variables(step, i, static_cast<std::size_t>(placed.local_rank)));
      node.ranks.push_back(std::move(launch));
    }
    if (scheduler.selects_gpus()) remove_inherited_visibility(node);
    node.server_ports = told_ports(spec, facts[i], node);
    plan.nodes.push_back(std::move(node));
  }
  return plan;
}

namespace {

NodeFacts unknown_facts() {
  NodeFacts facts;
  facts.hostname = kUnknownUntilLaunch;
  return facts;
}

// Marks the values that make_launch_plan() derives from facts that are not known yet.
void mark_unknown(NodeLaunch& node, bool is_known, bool master_is_known) {
  for (RankLaunch& rank : node.ranks) {
    const auto mark = [&](const char* name) {
      if (const auto found = rank.environment.find(name); found != rank.environment.end())
        found->second = kUnknownUntilLaunch;
    };
    for (const char* const name :
         {env::kMasterPort, env::kTorchRunId, env::kJaxCoordinator, env::kMxnetRootPort})
      mark(name);
    if (!master_is_known) {
      for (const char* const name : {env::kMasterAddr, "DMLC_PS_ROOT_URI", "DMLC_NODE_HOST"}) mark(name);
    }
    if (!is_known) mark(env::kOmpNumThreads);
  }
}

/// Binds only the nodes that were asked. The others stay unbound and cause no error.
Result<std::vector<NodeBinding>> bind_known(const JobSpec& spec, const Placement& placement,
                                            const std::vector<NodeFacts>& facts,
                                            const std::vector<bool>& is_known,
                                            const Environment& head_environment, const Scheduler& scheduler) {
  Placement known;
  std::vector<NodeFacts> known_facts;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!is_known[i]) continue;
    known.nodes.push_back(placement.nodes[i]);
    known_facts.push_back(facts[i]);
  }
  auto bound = bind_nodes(spec, known, known_facts, head_environment, scheduler);
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
  std::vector<NodeFacts> assumed;
  for (const std::optional<NodeFacts>& own : known) assumed.push_back(own ? *own : here);
  const auto limits = mapped_rank_limits(spec, allocation, assumed);
  if (!limits) return fail(limits.error());
  const auto placement = place(spec, allocation, slots, *limits);
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
  const Scheduler& scheduler = scheduler_of(allocation);
  auto bindings = bind_known(spec, *placement, facts, is_known, head_environment, scheduler);
  if (!bindings) return fail(bindings.error());
  plan.bindings = *std::move(bindings);
  plan.launch =
      make_launch_plan(spec, *placement, facts, head_environment, "ddlrun", plan.bindings, scheduler);
  // MASTER_ADDR is marked as unknown unless all nodes were asked.
  const bool master_is_known = std::find(is_known.begin(), is_known.end(), false) == is_known.end();
  for (NodeLaunch& node : plan.launch.nodes) {
    if (!node.serves_gloo) continue;
    node.common_environment[env::kHorovodGlooAddress] = kGlooAddress;
    node.common_environment[env::kHorovodGlooPort] = kUnknownUntilLaunch;
  }
  for (std::size_t i = 0; i < plan.launch.nodes.size(); ++i)
    mark_unknown(plan.launch.nodes[i], is_known[i], master_is_known);
  if (!limits->empty())
    plan.unknown_objects = static_cast<int>(std::count(is_known.begin(), is_known.end(), false));
  plan.asked_all = std::find(known.begin(), known.end(), std::nullopt) == known.end();
  return plan;
}

}  // namespace ddl::launcher
