// An agent's part in a tree of agents: it starts others and passes messages on, up and down.
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
  /// say: to whoever started this agent.
  Relay(EventLoop& loop, std::function<void(const message::Any&)> say) : loop_(loop), say_(std::move(say)) {}

  /// Starts the agents of a branch over ssh, or expects them. Called once.
  void start(const message::StartAgents& branch);
  /// Hands a message to the node of the branch that it is for.
  void pass_down(const message::Routed& routed);
  /// Closes the links to all of them and returns when they are gone, by force after the deadline.
  void shut_down(Deadline deadline);

 private:
  void pass_up(std::size_t node, const message::Any& message);

  EventLoop& loop_;
  std::function<void(const message::Any&)> say_;
  std::vector<int> numbers_;  // of each node of the fleet, as the parent counts
  std::unique_ptr<NodeStarter> starter_;
  std::optional<Fleet> fleet_;
};

}  // namespace ddl::launcher
