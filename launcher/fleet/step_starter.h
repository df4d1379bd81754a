// Agents as a step of the scheduler's job that ddlrun runs in, so that its cgroups, accounting and cancelling hold for
// them and their ranks: one process (srun) for one agent, or for the agents of several nodes, and a sentence about why
// it failed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "launcher/fleet/node_starter.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::launcher {

/// What is known about a process of Scheduler::starter() that did not start an agent.
struct StepAttempt {
  std::optional<int> wait_status;  ///< as from waitpid(2); nullopt: it is still running
  std::string_view noise;          ///< standard output up to its end
  std::string_view errors;         ///< standard error, or its end
};

/// The reason without the node's name, with the process's own message in parentheses, and what to do next. Pure.
Error describe_step_failure(const Scheduler& scheduler, const StepAttempt& attempt);

/// Whether the scheduler's starter() is in the PATH of this environment.
bool has_starter(const Scheduler& scheduler, const Environment& own);

/// Starts agents as steps of a job. Nodes on which the job has the same numbers of CPUs and GPUs share a step: Slurm
/// 22.05 refuses a step that requests different ones.
class StepStarter : public NodeStarter, public AgentGroupStarter {
 public:
  /// path: of ddlrun on the nodes; own: the environment of this process, which describes the job.
  StepStarter(const Scheduler& scheduler, SchedulerJob job, std::string path, const Environment& own)
      : scheduler_(scheduler),
        job_(std::move(job)),
        path_(std::move(path)),
        environment_(environment_entries(scheduler.agent_environment(own))) {}

  bool forks() const override { return false; }
  /// The agent's link is the standard input and output of a step's process.
  Result<StartedAgent> start(const AllocatedNode& node) override;
  Result<std::vector<StartedAgentGroup>> start(const std::vector<AllocatedNode>& nodes,
                                               const std::string& nonce) override;

 private:
  const Scheduler& scheduler_;
  SchedulerJob job_;
  std::string path_;
  std::vector<std::string> environment_;
};

}  // namespace ddl::launcher
