// The interface by which an agent is started on a node.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {

/// The process of an agent as the head sees it: the agent itself, or the ssh or srun that it was started by.
class AgentProcess {
 public:
  virtual ~AgentProcess() = default;
  /// Called after the link has closed. The text follows "node3: ": "the agent (process 71) was killed by SIGKILL".
  virtual std::string how_it_ended() = 0;
  /// Called if the link has closed before the agent answered. noise: the text that came instead of an answer;
  /// errors: the text on standard error. One sentence about its node; kBusy: the host may accept the next attempt.
  virtual Error why_not_started(std::string_view noise, std::string_view errors) = 0;
  /// Called after the link was closed: waits for the end of the process, and kills it after the deadline. Returns
  /// when nothing is left of the node's part of the job, as far as the head can see it.
  virtual void clean_up(Deadline deadline) = 0;
};

struct StartedAgent {
  UniqueFd read;      ///< from the agent
  UniqueFd write;     ///< to the agent; empty: read is a socket and goes both ways
  UniqueFd errors;    ///< its standard error; empty: it is the head's own
  std::string nonce;  ///< part of the agent's greeting; empty: there is no greeting, frames begin at once
  std::unique_ptr<AgentProcess> process;
  pid_t child = 0;  ///< the agent, if it is a child of this process; 0: treated as on another host
};

/// Starts agents of one kind: on this machine, over ssh, by srun.
class NodeStarter {
 public:
  virtual ~NodeStarter() = default;
  /// True if start() forks this process, and so must be called before any thread is started.
  virtual bool forks() const = 0;
  /// Starts the agent, which answers over the link later. Error: one sentence about this node.
  virtual Result<StartedAgent> start(const AllocatedNode& node) = 0;
};

/// One process that starts the agents of several nodes. These connect to another agent once they have received a
/// Join.
struct StartedAgentGroup {
  std::vector<int> nodes;  ///< positions in the argument of AgentGroupStarter::start()
  UniqueFd in;             ///< they read Join from it
  UniqueFd out;            ///< ends when all of them have ended
  UniqueFd errors;
  std::unique_ptr<AgentProcess> process;
};

class AgentGroupStarter {
 public:
  virtual ~AgentGroupStarter() = default;
  /// Starts the agents, in as few groups as possible. nonce: of the agents' greeting. Error: one sentence.
  virtual Result<std::vector<StartedAgentGroup>> start(const std::vector<AllocatedNode>& nodes,
                                                       const std::string& nonce) = 0;
};

}  // namespace ddl::launcher
