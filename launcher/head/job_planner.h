// The head's way from the facts of the nodes to the launch plan.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/gloo/gloo_store.h"
#include "launcher/head/supervisor.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/node_facts.h"
#include "launcher/plan/placement.h"

namespace ddl::launcher {

/// Unique among jobs of this host: "ddlrun-<pid of this process>-<random>". Error: there are no random numbers.
Result<std::string> make_job_id();

/// Places the ranks, collects the ports that the nodes hold for them, and makes the plan. Does no I/O. One thread.
class JobPlanner {
 public:
  /// facts: of all nodes of the allocation. spec, allocation and head_environment outlive the planner. Error: as
  /// mapped_rank_limits(), place() and check_horovod().
  static Result<JobPlanner> place_ranks(const JobSpec& spec, const Allocation& allocation,
                                        const std::vector<NodeFacts>& facts,
                                        const Environment& head_environment);

  const Placement& placement() const { return placement_; }
  /// Of the nodes of the placement.
  const std::vector<NodeFacts>& facts() const { return facts_; }
  /// The nodes of the placement, as indices into the allocation.
  std::vector<int> allocated_nodes() const;
  Supervisor::Job supervised_job() const;
  /// As ranks are told their places by Horovod's variables.
  GlooShape gloo_shape() const;

  /// How many ports the agent of a node of the placement is to hold, beside those of its facts.
  int wanted_ports(int node) const;
  /// The ports that it holds. Error: there are fewer than wanted; names the node.
  Status add_ports(int node, const std::vector<int>& ports);
  /// Whether the nodes hold all that is wanted of them.
  bool has_all_ports() const;

  struct Plan {
    LaunchPlan launch;
    std::vector<NodeBinding> bindings;  ///< of launch.nodes[i]
  };
  /// To be called once has_all_ports(). Error: as bind_nodes().
  Result<Plan> plan() const;

 private:
  JobPlanner(const JobSpec& spec, const Allocation& allocation, const Environment& head_environment,
             Placement placement)
      : spec_(spec),
        allocation_(allocation),
        head_environment_(head_environment),
        placement_(std::move(placement)) {}

  const JobSpec& spec_;
  const Allocation& allocation_;
  const Environment& head_environment_;
  Placement placement_;
  std::vector<NodeFacts> facts_;  ///< of the nodes of the placement
};

}  // namespace ddl::launcher
