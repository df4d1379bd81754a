// An agent's part in a tree of agents: it starts others and relays messages, up and down, without reading
// them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "launcher/fleet/fleet.h"
#include "launcher/loop/event_loop.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// Lives on the loop's thread. Until start() it does nothing.
class Relay {
 public:
  /// report: sends a message to the process that started this agent.
  Relay(EventLoop& loop, std::function<void(const message::AgentToHead&)> report)
      : loop_(loop), report_(std::move(report)) {}

  /// Starts the agents of a branch over ssh, or expects them. Called once.
  void start(const message::StartAgents& branch);
  /// Forwards a message, unread, to the node of the branch that it is for.
  void pass_down(message::Routed&& routed);
  /// The same to all agents that this one has started; these forward it in turn.
  void pass_to_all(const net::Frame& frame);
  /// Closes the links to all of them and returns when they are gone; kills their ssh processes after the deadline.
  void shut_down(Deadline deadline);

 private:
  void pass_up(int node, net::Frame&& frame);

  EventLoop& loop_;
  std::function<void(const message::AgentToHead&)> report_;
  std::vector<int> numbers_;  // of each node of this fleet: its number in the parent's fleet
  std::unique_ptr<NodeStarter> starter_;
  std::optional<Fleet> fleet_;
};

}  // namespace ddl::launcher
