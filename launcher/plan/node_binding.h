// Where on its node each rank runs.
#pragma once

#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "base/error.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/node_facts.h"
#include "launcher/plan/placement.h"
#include "launcher/plan/rank_environment.h"

namespace ddl::launcher {

struct NodeBinding {
  affinity::BindingPlan plan;   ///< without ranks where nothing is bound
  std::string unbound_because;  ///< "" if it is bound, or was not to be
};

/// Whether the user has said anything about binding: then it is done or refused. The default does what it can.
bool is_binding_asked_for(const JobSpec& spec);

/// Every variable that leaves a program only some of its node's GPUs, of all vendors.
std::vector<std::string> visible_device_variables();

/// Of each node of the placement; nodes that look alike and have as many ranks are planned once. Pure. facts[i] belongs to
/// placement.nodes[i]. head_environment may say which GPUs are visible, on all nodes alike;
/// in a Slurm job each node's facts do, unless -x says otherwise.
/// BindTo::kAuto binds nothing where it cannot, and says why. Error (kInvalidArgument): what else was asked for is not
/// possible on a node, which the sentence names.
Result<std::vector<NodeBinding>> bind_nodes(const JobSpec& spec, const Placement& placement,
                                            const std::vector<NodeFacts>& facts,
                                            const Environment& head_environment, bool in_slurm = false);

/// The environment that all ranks of a node share, as far as it says which GPUs are visible: common's own, or in a Slurm job
/// what the node's facts say, unless -x has set or passed on one.
Environment with_visible_devices(Environment common, const NodeFacts& facts, const JobSpec& spec,
                                 bool in_slurm);

/// What a bound rank is told beside its CPUs: OMP_NUM_THREADS, OMP_PLACES and OMP_PROC_BIND, none of which replaces what
/// common has, the adapters near it in DDL_NEAR_NICS, and
/// the one variable that leaves it its GPUs visible.
Environment binding_environment(const affinity::RankBinding& rank, const Environment& common);

}  // namespace ddl::launcher
