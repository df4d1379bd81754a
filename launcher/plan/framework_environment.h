// What frameworks of machine learning read when they start: which rank a process is, and where the others are. Each
// framework has names of its own for that. Pure: numbers in, text out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/node_facts.h"
#include "launcher/plan/placement.h"

namespace ddl::launcher {

/// Where the servers that frameworks open on rank 0 listen.
struct MeetingPoint {
  std::string address;  ///< at which all ranks reach rank 0's node; of IPv6 without brackets
  // TCP ports that rank 0's agent holds for them (node/held_ports.h).
  int torch_port = 0;
  int jax_port = 0;
};

/// Of rank 0's node: its address, and the ports that its agent holds.
MeetingPoint meeting_point(const JobSpec& spec, const Placement& placement, const NodeFacts& facts);

/// Whether ranks get the variables of torch.
bool tells_torch(Framework framework);

/// Of a job, as frameworks are told.
struct FrameworkJob {
  Framework framework = Framework::kAuto;
  int num_ranks = 0;
  int num_nodes = 0;
  std::string id;  ///< of this run: different for each
  MeetingPoint meeting;
  bool in_slurm = false;  ///< ranks get Slurm's variables anyway
  std::string node_list;  ///< names by comma
};

/// The variables of a rank. hostname: of its node. JAX knows its processes by Slurm's variables, so --framework jax sets
/// these outside of Slurm, too.
Environment framework_environment(const FrameworkJob& job, const RankPlacement& rank,
                                  const std::string& hostname);

/// By which interface gloo, in PyTorch, is to connect on a node; "": it finds it itself. Without it gloo takes the
/// address of the hostname, which other nodes cannot reach if it is one of the loopback.
std::string gloo_interface(const JobSpec& spec, const Placement& placement, const NodeFacts& node);

/// The names that a framework reads, of those that describe a rank or its job.
struct FrameworkVariables {
  std::string_view framework;           ///< "torch"
  std::vector<std::string_view> set;    ///< by framework_environment()
  std::vector<std::string_view> other;  ///< only by other launchers
};
const std::vector<FrameworkVariables>& framework_variables();

/// The framework that has the variable among those that ddlrun sets; "": none.
std::string_view framework_of(std::string_view name);

/// True for variables by which another launcher, or a shell, has described a process for a framework. Ranks do not
/// inherit them: some of one job beside some of another would mix two worlds.
bool is_of_framework(std::string_view name);

}  // namespace ddl::launcher
