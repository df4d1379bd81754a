// Which way each node's agent is started.
#pragma once

#include <memory>
#include <vector>

#include "launcher/fleet/node_starter.h"
#include "launcher/fleet/ssh/ssh_command.h"
#include "launcher/job/allocation.h"
#include "launcher/job/environment.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// The starters that a job needs, chosen by --launcher: forked on this machine; elsewhere by srun in a Slurm job, else over ssh.
class NodeStarters {
 public:
  /// own: the environment of this process, which srun learns of the job from.
  NodeStarters(const JobSpec& spec, const Allocation& allocation, const Environment& own);

  /// How hosts are reached over ssh: for agents that start others.
  const SshSettings& ssh() const { return settings_; }
  /// What starts the agents of many of Slurm's nodes at once; null elsewhere.
  CrewStarter* crew() const { return crew_.get(); }
  /// One for each node of the allocation; they live as long as this.
  const std::vector<NodeStarter*>& by_node() const { return by_node_; }

 private:
  SshSettings settings_;
  std::unique_ptr<NodeStarter> local_;
  std::unique_ptr<NodeStarter> ssh_;
  std::unique_ptr<NodeStarter> srun_;  ///< only in a Slurm job
  std::unique_ptr<CrewStarter> crew_;  ///< the same
  std::vector<NodeStarter*> by_node_;
};

}  // namespace ddl::launcher
