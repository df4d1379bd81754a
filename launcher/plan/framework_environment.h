// What frameworks of machine learning read when they start: which rank a process is, and where the others are. Each
// framework has names of its own for that. Pure: numbers in, text out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/placement.h"
#include "launcher/plan/server_addresses.h"

namespace ddl::launcher {

/// Of a job, as frameworks are told.
struct FrameworkJob {
  Framework framework = Framework::kAuto;
  int num_ranks = 0;
  int num_nodes = 0;
  std::string id;  ///< of this run: different for each
  ServersOfRank0 servers;
  Environment scheduler_variables;                ///< that ranks get anyway
  std::string node_list;                          ///< names by comma
  RankRoles roles{};                              ///< JobSpec::roles
  std::vector<std::string> tensorflow_configs{};  ///< of each rank; empty for other frameworks
  int restarts = 0;                               ///< GenerationNumber::restarts
  int max_restarts = 0;                           ///< ElasticSpec::max_restarts
};

/// TF_CONFIG of each rank: the cluster, and the rank's own task in it. addresses: rank_addresses().
std::vector<std::string> tensorflow_configs(const RankRoles& roles,
                                            const std::vector<std::string>& addresses);

/// A node, as its ranks are told.
struct FrameworkNode {
  int number = 0;      ///< among the nodes of the job
  int local_size = 0;  ///< its ranks
  std::string hostname;
  std::string address;  ///< node_address()
};

/// The variables of all ranks, of those of a node, and of one rank. JAX knows its processes by variables that a
/// scheduler sets, so --framework jax sets these outside of its jobs, too.
Environment job_variables(const FrameworkJob& job);
Environment node_variables(const FrameworkJob& job, const FrameworkNode& node);
Environment rank_variables(const FrameworkJob& job, const RankPlacement& rank);

/// The variables of a rank of an elastic job of Horovod.
Environment elastic_variables(const RankPlacement& rank, const std::string& hostname);

/// The variables of a rank that sees no GPUs but this number of its own. Without them JAX would take the one whose index
/// is the local rank.
Environment own_gpus_environment(Framework framework, std::size_t own_gpus);

/// The names that a framework reads, of those that describe a rank or its job.
struct FrameworkVariables {
  std::string_view framework;      ///< "torch"
  std::vector<Framework> choices;  ///< of --framework with which ranks get them
  std::vector<std::string_view>
      set;  ///< by job_variables(), node_variables(), rank_variables() and own_gpus_environment()
  std::vector<std::string_view>
      other;  ///< by an agent, or by other launchers; ranks inherit neither these nor set
  std::vector<std::string_view> settings{};  ///< that the user may have made, and ranks inherit
};
const std::vector<FrameworkVariables>& framework_variables();

/// The framework that reads the variable; "": none.
std::string_view framework_of(std::string_view name);

/// Whether each rank gets the variable with this choice.
bool is_told_by(std::string_view name, Framework chosen);

/// Whether ranks of a job with this choice get the variables of the framework of this name; "": false.
bool is_told(Framework chosen, std::string_view framework);

/// True for variables by which another launcher, or a shell, has described a process for a framework. Ranks do not
/// inherit them: some of one job beside some of another would mix two worlds. With --framework none they do.
bool is_of_another_job(std::string_view name, Framework chosen);

}  // namespace ddl::launcher
