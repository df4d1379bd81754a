// Groups of agents: one process (srun) starts the agents of several nodes, and these connect to another
// agent, which holds the rendezvous.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/fleet/node_starter.h"
#include "launcher/fleet/stream_tail.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/node_facts.h"
#include "launcher/protocol/messages.h"
#include "net/job_key.h"

namespace ddl::launcher {

/// The agents of several nodes that one process has started, until they have joined.
class AgentGroup {
 public:
  /// on_ended: the process has ended, on the loop's thread, once; the failure is for the agents that have not
  /// joined.
  AgentGroup(EventLoop& loop, StartedAgentGroup started, std::function<void(const Error&)> on_ended);

  /// Why the agent of this node gave up, if it has written that; else "".
  std::string error_of(const std::string& node) const;
  /// Sends the rendezvous to all of them. Once.
  void send_join(const message::Join& join);
  /// on_ended is not called from here on.
  void close();
  void clean_up(Deadline deadline) { process_->clean_up(deadline); }

 private:
  UniqueFd in_;
  StreamTail out_;
  StreamTail errors_;
  std::unique_ptr<AgentProcess> process_;
};

/// All groups of a job, and the secrets by which their agents join the one that holds the rendezvous. For the
/// loop's thread. The starter outlives it.
class AgentGroups {
 public:
  /// With a key and a nonce of their own. Error: the system has no random numbers.
  static Result<std::unique_ptr<AgentGroups>> make(EventLoop& loop, AgentGroupStarter& starter);

  /// Starts the agents of these nodes. on_failed: the agents of one process that have not joined, as positions in
  /// nodes, and why; called on the loop's thread and never from inside start().
  using OnFailed = std::function<void(const std::vector<int>& positions, const Error& why)>;
  void start(const std::vector<AllocatedNode>& nodes, const OnFailed& on_failed);
  /// Adds the key and the nonce by which the agent that holds the rendezvous authenticates the others.
  void describe_rendezvous(message::StartAgents& branch) const;
  /// The rendezvous listens on this host: sends all groups its addresses, the first time.
  void join(const message::RendezvousReady& rendezvous, const NodeFacts& host);
  /// Why the agent of this node gave up, if it has written that; else "".
  std::string error_of(const std::string& node) const;

  /// Sends nothing from here on; waits for the processes, and ends them after the deadline.
  void shut_down(Deadline deadline);

 private:
  AgentGroups(EventLoop& loop, AgentGroupStarter& starter, net::JobKey key, std::string nonce)
      : loop_(loop), starter_(starter), key_(std::move(key)), nonce_(std::move(nonce)) {}

  EventLoop& loop_;
  AgentGroupStarter& starter_;
  const net::JobKey key_;
  const std::string nonce_;
  std::vector<std::unique_ptr<AgentGroup>> groups_;
  bool has_sent_join_ = false;
};

}  // namespace ddl::launcher
