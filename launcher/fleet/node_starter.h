// How an agent comes to run on a node.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {

/// Why an agent did not come up, in one sentence about its node.
struct StartFailure {
  std::string sentence;
  bool is_worth_a_retry = false;  ///< the other side was busy rather than unwilling
};

/// What runs the agent, as far as the head can see it.
class AgentProcess {
 public:
  virtual ~AgentProcess() = default;
  /// After the link has closed, behind "node3: ": "the agent (process 71) was killed by SIGKILL".
  virtual std::string how_it_ended() = 0;
  /// After the link has closed before the agent answered. noise: what came instead of an answer; errors: what
  /// was written on standard error.
  virtual StartFailure why_not_started(std::string_view noise, std::string_view errors) = 0;
  /// Asks for nothing any more: the link has been closed. Ends it by force after the deadline. Returns when
  /// what the head can see of the node's part of the job is gone.
  virtual void clean_up(Deadline deadline) = 0;
};

struct StartedAgent {
  UniqueFd read;      ///< from the agent
  UniqueFd write;     ///< to the agent; empty: read is a socket and goes both ways
  UniqueFd errors;    ///< its standard error; empty: it is the head's own
  std::string nonce;  ///< what the agent's greeting must contain; empty: the first byte is a frame's
  std::unique_ptr<AgentProcess> process;
  pid_t child =
      0;  ///< the agent, if it is a child of this process; 0: it is on another host, or to be taken for that
};

/// Starts agents of one kind: on this machine, over ssh, by srun.
class NodeStarter {
 public:
  virtual ~NodeStarter() = default;
  /// True if start() forks this process, so that it must come before anything starts a thread.
  virtual bool forks() const = 0;
  /// Begins; the agent answers over the link later. Error: one sentence about this node.
  virtual Result<StartedAgent> start(const AllocatedNode& node) = 0;
};

/// The process that runs the agents of several nodes. These connect to another agent once they have received
/// a Join.
struct StartedAgentGroup {
  std::vector<std::size_t> nodes;  ///< positions in what AgentGroupStarter::start() was given
  UniqueFd in;                     ///< where they read Join
  UniqueFd out;                    ///< ends when all of them have ended
  UniqueFd errors;
  std::unique_ptr<AgentProcess> process;
};

class AgentGroupStarter {
 public:
  virtual ~AgentGroupStarter() = default;
  /// Begins, with as few groups as these nodes take. nonce: of the agents' greeting. Error: one sentence.
  virtual Result<std::vector<StartedAgentGroup>> start(const std::vector<AllocatedNode>& nodes,
                                                       const std::string& nonce) = 0;
};

}  // namespace ddl::launcher
