#include "launcher/head/job_planner.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/text.h"
#include "launcher/plan/server_addresses.h"

namespace ddl::launcher {
namespace {

std::vector<int> slots_of(const Allocation& allocation, const std::vector<NodeFacts>& facts) {
  std::vector<int> slots;
  for (std::size_t i = 0; i < facts.size(); ++i)
    slots.push_back(allocation.nodes[i].slots.value_or(facts[i].slots));
  return slots;
}

}  // namespace

Result<std::string> make_job_id() {
  constexpr std::size_t kRandomBytes = 4;
  DDL_ASSIGN(random, random_hex(kRandomBytes));
  return fmt::format("ddlrun-{}-{}", ::getpid(), random);
}

Result<JobPlanner> JobPlanner::place_ranks(const JobSpec& spec, const Allocation& allocation,
                                           const std::vector<NodeFacts>& facts,
                                           const Environment& head_environment) {
  DDL_ASSIGN(limits, mapped_rank_limits(spec, allocation, facts));
  DDL_ASSIGN(placement, place(spec, allocation, slots_of(allocation, facts), limits));
  JobPlanner planner(spec, allocation, head_environment, std::move(placement));
  for (const PlacedNode& node : planner.placement_.nodes) planner.facts_.push_back(facts[node.allocated]);
  DDL_TRY(check_horovod(spec, planner.placement_, planner.facts_));
  return planner;
}

std::vector<int> JobPlanner::allocated_nodes() const {
  std::vector<int> nodes;
  for (const PlacedNode& node : placement_.nodes) nodes.push_back(node.allocated);
  return nodes;
}

Supervisor::Job JobPlanner::supervised_job() const {
  Supervisor::Job job;
  for (const RankPlacement& rank : placement_.ranks) {
    job.rank_hosts.push_back(placement_.nodes[rank.node].name);
    job.rank_nodes.push_back(rank.node);
    if (!spec_.roles.empty()) job.serves.push_back(role_of(spec_.roles, rank.rank).serves);
  }
  job.kill_grace_seconds = spec_.kill_grace_seconds;
  job.outlives_failures = spec_.elastic.mode == ElasticMode::kContinue;
  if (!spec_.started_ranks.empty()) {
    job.is_left_out.assign(placement_.ranks.size(), true);
    for (const int rank : spec_.started_ranks) job.is_left_out.at(rank) = false;
  }
  return job;
}

GlooShape JobPlanner::gloo_shape() const {
  return launcher::gloo_shape(placement_.ranks, horovod_hostnames(placement_, facts_));
}

int JobPlanner::wanted_ports(int node) const {
  return ports_for_ranks(spec_.framework, std::ssize(placement_.nodes.at(node).ranks));
}

Status JobPlanner::add_ports(int node, const std::vector<int>& ports) {
  const int wanted = wanted_ports(node);
  if (std::ssize(ports) < wanted)
    return fail(ErrorCode::kUnavailable,
                fmt::format("{}: its ranks need {}, and it has {}; each takes a descriptor, too (ulimit -n)",
                            placement_.nodes[node].name, counted(wanted, "free TCP port"), ports.size()));
  std::vector<int>& held = facts_.at(node).held_ports;
  held.resize(kPortsOfRank0);
  held.insert(held.end(), ports.begin(), ports.end());
  return {};
}

bool JobPlanner::has_all_ports() const {
  for (int node = 0; node < std::ssize(facts_); ++node) {
    const int wanted = wanted_ports(node);
    if (wanted > 0 && std::ssize(facts_[node].held_ports) < kPortsOfRank0 + wanted) return false;
  }
  return true;
}

Result<JobPlanner::Plan> JobPlanner::plan() const {
  const Scheduler& scheduler = scheduler_of(allocation_);
  DDL_ASSIGN(bindings, bind_nodes(spec_, placement_, facts_, head_environment_, scheduler));
  DDL_ASSIGN(job_id, make_job_id());
  Plan plan;
  plan.bindings = std::move(bindings);
  plan.launch =
      make_launch_plan(spec_, {placement_, facts_, job_id, plan.bindings, scheduler}, head_environment_);
  return plan;
}

}  // namespace ddl::launcher
