// The binding of each rank to CPUs, memory and GPUs of its node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "base/error.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/node_facts.h"
#include "launcher/plan/placement.h"
#include "launcher/plan/rank_environment.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::launcher {

struct NodeBinding {
  affinity::BindingPlan plan;   ///< without ranks if nothing is bound
  std::string unbound_because;  ///< "" if ranks are bound, or binding was switched off
  /// Each rank sees the GPUs of all ranks of the node, its own where its local rank is the index.
  bool shares_view_of_gpus = false;
  std::string
      other_view_because;  ///< why ranks do not see the GPUs that --visible-gpus asks for; "": they do
};

/// Whether programs of this framework choose the GPU whose index is their local rank, as torchrun and horovodrun have it.
/// If not, they take all GPUs that they see, or the first.
bool chooses_gpu_by_local_rank(Framework framework);

/// The GPUs that a bound rank sees, in the order of its program's indices.
std::vector<affinity::AssignedGpu> visible_gpus(const NodeBinding& binding, int local_rank);

/// Whether the user has given any option of binding: then a binding that is not possible is an error. By default
/// ranks are bound if it is possible.
bool is_binding_asked_for(const JobSpec& spec);

/// All variables of all vendors that restrict a program to some of its node's GPUs.
std::vector<std::string> visible_device_variables();

/// The bindings of all nodes of the placement; equal nodes in sequence with the same number of ranks are planned
/// once. Pure. facts[i] belongs to placement.nodes[i]. head_environment may select the visible GPUs of all nodes;
/// if the scheduler selects GPUs, each node's facts do, unless -x does. If the default policy (BindTo::kAuto) is not
/// possible, nothing is bound, and unbound_because states the reason.
/// Error (kInvalidArgument): a binding that was asked for is not possible on a node, which the sentence names.
Result<std::vector<NodeBinding>> bind_nodes(const JobSpec& spec, const Placement& placement,
                                            const std::vector<NodeFacts>& facts,
                                            const Environment& head_environment,
                                            const Scheduler& scheduler = no_scheduler());

/// Returns common with the variables that select visible GPUs: those of common, or if the scheduler selects them those
/// of the node's facts, unless -x names one of these variables.
Environment with_visible_devices(Environment common, const NodeFacts& facts, const JobSpec& spec,
                                 const Scheduler& scheduler);

/// The vendor of the GPUs that binding_environment() has given a rank; nullopt if it has none.
std::optional<affinity::GpuVendor> vendor_of_gpus(const Environment& rank);

/// The variables of a bound rank: OMP_NUM_THREADS, OMP_PLACES and OMP_PROC_BIND, the network adapters near it in
/// DDL_NEAR_NICS, none of which replaces a value in common, and the variable that selects the GPUs that it sees.
Environment binding_environment(const affinity::RankBinding& rank,
                                const std::vector<affinity::AssignedGpu>& visible, const Environment& common);

}  // namespace ddl::launcher
