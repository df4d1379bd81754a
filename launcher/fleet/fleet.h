// All agents of a job: started, answered, spoken to.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/fleet/link.h"
#include "launcher/fleet/node_starter.h"
#include "launcher/loop/event_loop.h"
#include "launcher/message/message.h"
#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

/// One agent a node of the allocation, by index. Handlers run on the loop's thread.
class Fleet {
 public:
  struct Handlers {
    std::function<void()> on_ready;  ///< every agent has sent its facts; once
    std::function<void(std::size_t node, message::Any&&)> on_message;  ///< everything but facts
    /// The link broke although the agent had not finished: one sentence that names the host.
    std::function<void(std::size_t node, const std::string& how)> on_lost;
  };

  explicit Fleet(EventLoop& loop) : loop_(loop) {}

  /// Starts every agent. Must come before anything starts a thread. Error: the first that could not be begun.
  Status start(const Allocation& allocation, NodeStarter& starter);
  /// Begins to deliver.
  void listen(Handlers handlers);

  void send(std::size_t node, const message::Any& message) { message_link(node, message); }
  void send_all(const message::Any& message);
  /// Blocks until every agent has been handed what was sent.
  void flush();
  /// Closes the links and returns when the agents are gone, by force after the deadline.
  void shut_down(Deadline deadline);

  const std::vector<NodeFacts>& facts() const { return facts_; }  ///< complete once on_ready was called

 private:
  struct Agent {
    std::string name;
    std::unique_ptr<Link> link;
    std::unique_ptr<AgentProcess> process;
    bool has_facts = false;
    bool finished = false;
    bool lost = false;
  };
  void message_link(std::size_t node, const message::Any& message);
  void on_frame(std::size_t node, const net::Frame& frame);
  void on_closed(std::size_t node, const std::string& reason);

  EventLoop& loop_;
  Handlers handlers_;
  std::vector<Agent> agents_;
  std::vector<NodeFacts> facts_;
  std::size_t missing_facts_ = 0;
};

}  // namespace ddl::launcher
