// How an agent comes to run on a node.
#pragma once

#include <memory>
#include <string>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {

/// What runs the agent, as far as the head can see it.
class AgentProcess {
 public:
  virtual ~AgentProcess() = default;
  /// After the link has closed: "the agent (process 71) was killed by SIGKILL (killed)".
  virtual std::string how_it_ended() = 0;
  /// Returns when what the head can see of the node's part of the job is gone; ends it by force after the deadline.
  virtual void clean_up(Deadline deadline) = 0;
};

struct StartedAgent {
  UniqueFd read;   ///< from the agent
  UniqueFd write;  ///< to the agent; empty: read is a socket and goes both ways
  std::unique_ptr<AgentProcess> process;
};

/// Starts agents of one kind: on this machine, over ssh, by srun.
class NodeStarter {
 public:
  virtual ~NodeStarter() = default;
  /// Begins; the agent answers over the link later. Error: one sentence about this node.
  virtual Result<StartedAgent> start(const AllocatedNode& node) = 0;
};

}  // namespace ddl::launcher
