// Groups of agents, each started on several nodes by one process (srun), and the secrets by which these agents join the
// first one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/fleet/node_starter.h"
#include "launcher/fleet/piped_child.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/node_facts.h"
#include "launcher/protocol/messages.h"
#include "net/job_key.h"

namespace ddl::launcher {

// The agents of several nodes that one process has started, until they have come.

class Crew {
 public:
  /// on_over: the process has ended, on the loop's thread, once; the failure is for those that have not come.
  Crew(EventLoop& loop, StartedCrew started, std::function<void(StartFailure)> on_over);

  /// Why the agent of this node gave up, if it has said so; else "".
  std::string said_by(const std::string& node) const;
  /// Tells all of them whom to join. Once.
  void tell(const message::Join& join);
  /// on_over is not called from here on.
  void close();
  void clean_up(Deadline deadline) { process_->clean_up(deadline); }

 private:
  UniqueFd in_;
  StreamTail out_;
  StreamTail errors_;
  std::unique_ptr<AgentProcess> process_;
};

// All crews of a job, and the secrets by which their agents join the first one.

/// For the loop's thread. The starter outlives it.
class Crews {
 public:
  /// With a key and a nonce of their own. Error: the system has no random numbers.
  static Result<std::unique_ptr<Crews>> make(EventLoop& loop, CrewStarter& starter);

  /// Starts the agents of these nodes. on_failed: why those have not come that one process has started, by position; called
  /// on the loop's thread and never from within this.
  using OnFailed = std::function<void(const std::vector<std::size_t>& positions, const StartFailure& why)>;
  void start(const std::vector<AllocatedNode>& nodes, const OnFailed& on_failed);
  /// What the agent that they join must know to recognise them.
  void tell_gatherer(message::StartAgents& branch) const;
  /// That agent waits for them now: tells them where.
  void join(const message::RendezvousReady& rendezvous, const NodeFacts& gatherer);
  /// Why the agent of this node gave up, if it has said so; else "".
  std::string said_by(const std::string& node) const;

  /// Nobody is told anything from here on; then waits for the processes, and ends them after the deadline.
  void shut_down(Deadline deadline);

 private:
  Crews(EventLoop& loop, CrewStarter& starter, net::JobKey key, std::string nonce)
      : loop_(loop), starter_(starter), key_(std::move(key)), nonce_(std::move(nonce)) {}

  EventLoop& loop_;
  CrewStarter& starter_;
  const net::JobKey key_;
  const std::string nonce_;
  std::vector<std::unique_ptr<Crew>> crews_;
};

}  // namespace ddl::launcher
