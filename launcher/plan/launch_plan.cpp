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
  const int local_rank = launch.local_rank;
  const affinity::RankBinding& binding = node.plan.ranks.at(local_rank);
  launch.cpus = binding.cpus;
  if (node.plan.binds_memory) launch.memory_nodes = binding.numa_nodes;
  for (const affinity::AssignedGpu& gpu : binding.gpus) launch.gpus.push_back(gpu.index);
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
  const auto add = [&](int index) {
    if (index < std::ssize(facts.held_ports)) told.push_back(facts.held_ports[index]);
  };
  const bool has_rank_0 = node.node_index == 0;
  if (has_rank_0 && (is_told(framework, "torch") || is_told(framework, "mxnet"))) add(0);
  if (has_rank_0 && is_told(framework, "jax")) add(1);
  for (int i = 0; i < ports_for_ranks(framework, std::ssize(node.ranks)); ++i) add(kPortsOfRank0 + i);
  return told;
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
    if (has_gpus) node.environment.erase(name);
  }
}

}  // namespace

namespace {

JobLaunch job_launch(const JobSpec& spec, const PlacedJob& placed, const Environment& head_environment) {
  const Placement& placement = placed.placement;
  JobLaunch job;
  job.job_id = placed.job_id;
  job.num_ranks = std::ssize(placement.ranks);
  for (const PlacedNode& node : placement.nodes) {
    job.node_names.push_back(node.name);
    job.node_ranks.push_back(node.ranks);
  }
  job.command = spec.command;
  job.workdir = spec.workdir;
  job.shell = spec.shell;
  job.environment = common_environment(head_environment, spec.exports, spec.framework);
  job.login_variables = login_variables(spec.exports);
  job.strict_bind = spec.strict_bind;
  job.report_bindings = spec.report_bindings;
  job.measures_use = spec.measures_use;
  job.kill_grace_seconds = spec.kill_grace_seconds;
  job.stall_warning_seconds = spec.stall_warning_seconds;
  job.stall_shutdown_seconds = spec.stall_shutdown_seconds;
  job.serves_gloo = spec.serves_gloo;
  job.preemption_watch = spec.elastic.preemption_watch;
  job.requeue = spec.requeue;
  if (!spec.timeline_file.empty())
    job.timeline_events = timeline::events_of_rank(spec.timeline_bytes, placement.ranks.size());
  if (!spec.network_interfaces.empty())
    job.environment[env::kNetworkInterfaces] = join(spec.network_interfaces, ",");
  if (spec.verbose) {
    job.environment[env::kReportStart] = "1";
    job.environment.try_emplace(env::kVerbose, "1");
  }
  // They replace those of the step that ddlrun runs in.
  for (const auto& [name, value] : placed.scheduler.step_variables({job.node_names, job.node_ranks}))
    job.environment[name] = value;
  job.environment["PWD"] = spec.workdir;  // ddlrun's own PWD may be another one
  if (spec.serves_gloo) {                 // where the rendezvous is, the agent adds
    for (const char* const name : {env::kHorovodController, env::kHorovodCpuOperations})
      job.environment.try_emplace(name, "gloo");
  }
  // The output of a single rank without a tag need not be split into lines: its bytes are forwarded as they arrive.
  job.split_lines = job.num_ranks > 1 || spec.tag_output || spec.timestamp_output;
  job.output_window = output_window(job.num_ranks);
  return job;
}

/// Where a scheduler selects GPUs, each node has its own of these variables.
Environment take_visible_devices(Environment& job, const Scheduler& scheduler) {
  Environment taken;
  if (!scheduler.selects_gpus()) return taken;
  for (const std::string& name : visible_device_variables()) {
    if (auto found = job.extract(name)) taken.insert(std::move(found));
  }
  return taken;
}

/// In front of the job's own, so that it hides an installed Horovod.
std::string python_path(const std::string& horovod, const Environment& common) {
  const std::string given = value_of(common, env::kPythonPath);
  return given.empty() ? horovod : horovod + ":" + given;
}

}  // namespace

Status check_horovod(const JobSpec& spec, const Placement& placement, const std::vector<NodeFacts>& facts) {
  for (std::size_t i = 0; spec.as_horovod && i < facts.size(); ++i) {
    if (facts[i].horovod.empty())
      return fail(
          ErrorCode::kUnavailable,
          placement.nodes[i].name +
              ": its ddlrun has no package horovod beside it, in share/ddlrun/as-horovod, which "
              "--as-horovod gives to the ranks",
          "install all of ddlrun there, not the program alone, or name a complete one by --remote-path");
  }
  return {};
}

Environment environment_of(const JobLaunch& job, const NodeLaunch& node, const RankLaunch& rank) {
  Environment whole = rank.environment;
  whole.insert(node.environment.begin(), node.environment.end());  // those of a rank win
  whole.insert(job.environment.begin(), job.environment.end());
  return whole;
}

LaunchPlan make_launch_plan(const JobSpec& spec, const PlacedJob& placed,
                            const Environment& head_environment) {
  const auto& [placement, facts, job_id, bindings, scheduler] = placed;
  DDL_CHECK(facts.size() == placement.nodes.size() && !facts.empty(),
            std::to_string(facts.size()) + " facts");
  LaunchPlan plan;
  plan.job = job_launch(spec, placed, head_environment);
  const Environment visible = take_visible_devices(plan.job.environment, scheduler);
  const SchedulerStep step{plan.job.node_names, plan.job.node_ranks};

  FrameworkJob job{spec.framework,
                   plan.job.num_ranks,
                   static_cast<int>(placement.nodes.size()),
                   job_id,
                   servers_of_rank_0(spec, placement, facts[0]),
                   scheduler.step_variables(step),
                   join(step.node_names, ","),
                   spec.roles};
  job.restarts = spec.generation.restarts;
  job.max_restarts = spec.elastic.max_restarts;
  if (spec.elastic.mode != ElasticMode::kOff)
    plan.job.environment[env::kGeneration] = std::to_string(spec.generation.generation);
  if (spec.elastic.mode == ElasticMode::kContinue) {
    plan.job.environment[env::kElastic] = "1";
    if (!spec.elastic.state_directory.empty()) {
      plan.job.environment[env::kElasticStateDir] = spec.elastic.state_directory;
      plan.job.environment[env::kElasticStateInterval] = std::to_string(spec.elastic.state_interval);
    }
  }
  if (spec.framework == Framework::kTensorflow)
    job.tensorflow_configs = tensorflow_configs(spec.roles, rank_addresses(spec, placement, facts));
  for (auto& [name, value] : job_variables(job)) plan.job.environment[name] = std::move(value);
  const std::vector<std::string> hostnames = horovod_hostnames(placement, facts);
  for (int i = 0; i < std::ssize(placement.nodes); ++i) {
    NodeLaunch node;
    node.node_index = i;
    node.environment = with_visible_devices(visible, facts[i], spec, scheduler);
    const auto add_default = [&](const char* name, const std::string& value) {
      if (!value.empty() && !plan.job.environment.contains(name)) node.environment.emplace(name, value);
    };
    add_default(env::kLibrary, facts[i].libddl);
    if (spec.as_horovod)
      node.environment[env::kPythonPath] = python_path(facts[i].horovod, plan.job.environment);
    if (is_told(spec.framework, "torch")) {
      const std::string interface = gloo_interface(spec, placement, facts[i]);
      for (const char* const name : {env::kGlooSocketIfname, env::kTpSocketIfname})
        add_default(name, interface);
    }
    if (spec.serves_gloo)
      add_default(env::kHorovodGlooIface, connecting_interface(spec, placement, facts[i]));
    // The scheduler's variables say how the node's GPUs are called there.
    Environment inherited;
    if (!visible.empty() || !facts[i].visible_devices.empty()) {
      inherited = plan.job.environment;
      for (const auto& [name, value] : node.environment) inherited[name] = value;
    }
    const Environment& common = inherited.empty() ? plan.job.environment : inherited;
    const FrameworkNode here{node.node_index, static_cast<int>(placement.nodes[i].ranks.size()), hostnames[i],
                             node_address(spec, placement, i, facts[i])};
    for (auto& [name, value] : node_variables(job, here)) node.environment[name] = std::move(value);
    for (const int rank : placement.nodes[i].ranks) {
      const RankPlacement& at = placement.ranks[rank];
      RankLaunch launch;
      launch.rank = rank;
      launch.local_rank = at.local_rank;
      launch.reads_stdin =
          spec.stdin_target == StdinTarget::kAll || (spec.stdin_target == StdinTarget::kRank0 && rank == 0);
      launch.environment = rank_variables(job, at);
      if (rank < std::ssize(spec.first_placements))
        launch.environment.merge(elastic_variables(spec.first_placements[rank], placement.nodes[i].name));
      launch.environment.merge(thread_environment(at, facts[i], plan.job.environment));
      // Ranks that take no slots are not bound.
      if (i < std::ssize(bindings) && at.local_rank < std::ssize(bindings[i].plan.ranks))
        bind_rank(launch, bindings[i], common, spec.framework);
      launch.environment.merge(scheduler.rank_variables(step, i, at.local_rank));
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
  facts.hostname = facts.horovod = kUnknownUntilLaunch;
  return facts;
}

void mark(Environment& environment, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (const auto found = environment.find(name); found != environment.end())
      found->second = kUnknownUntilLaunch;
  }
}

// Marks the values that make_launch_plan() derives from facts that are not known yet.
void mark_unknown(LaunchPlan& plan, const std::vector<bool>& is_known, Framework framework) {
  // The address of the first node is marked unless all nodes were asked.
  const bool master_is_known = std::find(is_known.begin(), is_known.end(), false) == is_known.end();
  // Without these frameworks the variables are the user's own.
  Environment& common = plan.job.environment;
  if (is_told(framework, "torch")) {
    mark(common, {env::kMasterPort, env::kTorchRunId});
    if (!master_is_known) mark(common, {env::kMasterAddr});
  }
  if (is_told(framework, "jax")) mark(common, {env::kJaxCoordinator});
  if (is_told(framework, "mxnet")) {
    mark(common, {env::kMxnetRootPort});
    if (!master_is_known) mark(common, {"DMLC_PS_ROOT_URI"});
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (is_told(framework, "mxnet") && !master_is_known) mark(plan.nodes[i].environment, {"DMLC_NODE_HOST"});
    for (RankLaunch& rank : plan.nodes[i].ranks) {
      if (!is_known[i]) mark(rank.environment, {env::kOmpNumThreads});
    }
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
  DDL_ASSIGN(bound, bind_nodes(spec, known, known_facts, head_environment, scheduler));
  std::vector<NodeBinding> bindings(facts.size());
  auto next = bound.begin();
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
  DDL_ASSIGN(limits, mapped_rank_limits(spec, allocation, assumed));
  DDL_ASSIGN(placement, place(spec, allocation, slots, limits));

  DryPlan plan;
  plan.assumed_slots = here.slots;
  plan.hosts_from = allocation.origin;
  std::vector<NodeFacts> facts;
  std::vector<bool> is_known;
  for (const PlacedNode& placed : placement.nodes) {
    const std::optional<NodeFacts>& own = known[placed.allocated];
    is_known.push_back(own.has_value());
    facts.push_back(own ? *own : unknown_facts());
    const bool has_slots = allocation.nodes[placed.allocated].slots || own;
    plan.slots.push_back(has_slots ? std::optional<int>(slots[placed.allocated]) : std::nullopt);
  }
  DDL_TRY(check_horovod(spec, placement, facts));
  const Scheduler& scheduler = scheduler_of(allocation);
  DDL_ASSIGN(bindings, bind_known(spec, placement, facts, is_known, head_environment, scheduler));
  plan.bindings = std::move(bindings);
  plan.launch =
      make_launch_plan(spec, {placement, facts, "ddlrun", plan.bindings, scheduler}, head_environment);
  if (JobLaunch& job = plan.launch.job; job.serves_gloo) {
    job.environment[env::kHorovodGlooAddress] = kGlooAddress;
    job.environment[env::kHorovodGlooPort] = kUnknownUntilLaunch;
  }
  mark_unknown(plan.launch, is_known, spec.framework);
  if (!limits.empty()) plan.unknown_objects = std::count(is_known.begin(), is_known.end(), false);
  plan.asked_all = std::find(known.begin(), known.end(), std::nullopt) == known.end();
  return plan;
}

}  // namespace ddl::launcher
