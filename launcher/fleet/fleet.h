// All agents of a job: they are started, directly or as a tree (--fan-out), and each sends and receives
// messages.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/fleet/agent_connection.h"
#include "launcher/fleet/agent_groups.h"
#include "launcher/fleet/node_starter.h"
#include "launcher/fleet/ssh.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/node_facts.h"
#include "launcher/protocol/messages.h"
#include "net/frame.h"

namespace ddl::launcher {

// How hosts are divided among those that connect to them.

/// A host that is connected to directly, and those that it is to connect to in its turn.
struct Branch {
  std::size_t first = 0;
  std::vector<std::size_t> rest;
  bool operator==(const Branch&) const = default;
};

/// At most fan_out branches of nearly the same size, in order; one for each node if fan_out is 0 or not less
/// than their number. Pure.
std::vector<Branch> divide(const std::vector<std::size_t>& nodes, int fan_out);

// All agents of a job: started, answered, spoken to.

/// One agent a node of the allocation, by index. Handlers run on the loop's thread.
///
/// With a fan-out, agents that need no fork are started in a tree: only so many from here, each of which
/// starts its share of the others and relays messages. With a group starter, the first of several does the
/// same with the agents that join it. The user of a fleet sees no difference.
class Fleet {
 public:
  struct Handlers {
    /// Every agent has sent its facts, or has failed: failures() says which. Once.
    std::function<void()> on_settled;
    /// A message that the fleet does not read itself, still encoded: a NodeReport for the head. An error says
    /// what the agent sent, and ends the link.
    std::function<Status(std::size_t node, net::Frame&&)> on_report;
    /// An agent that had answered is lost: one sentence without the node's name.
    std::function<void(std::size_t node, const std::string& how)> on_lost;
    std::function<void(std::size_t node)> on_answered;  ///< its facts are here
    std::function<void(std::size_t node, const std::string& why)> on_failed;
    /// Of a relay only: a message from a node that it reaches through another relay, to be forwarded unread.
    std::function<void(std::size_t node, net::Frame&&)> on_routed{};
  };
  struct Settings {
    int parallel = 32;                 ///< agents that are on their way at once
    double start_timeout_seconds = 0;  ///< for each, until its facts are here
    int fan_out = 0;                   ///< agents that are started from one; 0: all from here
    SshSettings ssh;                   ///< for agents that start others
    AgentGroupStarter* group_starter =
        nullptr;  ///< starts the agents of several nodes at once; outlives the fleet
  };
  /// Why a node's agent did not come up: one sentence without the node's name.
  struct Failure {
    std::size_t node = 0;
    std::string sentence;
  };

  Fleet(EventLoop& loop, Settings settings) : loop_(loop), settings_(std::move(settings)) {}

  /// starters[i] starts the agent of node i and outlives the fleet. Starts those that fork, so this must come
  /// before anything starts a thread. Error: one of these could not be begun.
  Status start(const Allocation& allocation, std::vector<NodeStarter*> starters);
  /// Starts the others, so many at once, and begins to deliver.
  void listen(Handlers handlers);

  void send(std::size_t node, const message::HeadToAgent& message);
  void send_all(const message::HeadToAgent& message);
  /// Sends a message that is encoded already, as a relay does.
  void forward(std::size_t node, net::Frame&& frame);
  /// Blocks until what was sent has left, for a moment at most.
  void flush();
  /// To be called after SIGCHLD: an agent that is a child of this process may have been stopped.
  void look_at_children();
  /// Closes the links and returns when the agents are gone, by force after the deadline.
  void shut_down(Deadline deadline);

  const std::vector<NodeFacts>& facts() const { return facts_; }  ///< empty where an agent has failed
  const std::vector<Failure>& failures() const { return failures_; }
  std::size_t size() const { return agents_.size(); }
  /// Nodes whose agents have not answered yet.
  std::vector<std::size_t> missing() const;
  /// Seconds from an agent's start to its facts; 0 until then.
  double answer_seconds(std::size_t node) const { return agents_[node].answer_seconds; }
  /// Of these, until it had greeted: ssh. 0 where nobody greets, or behind another agent.
  double connect_seconds(std::size_t node) const;
  /// Its clock less ours when its facts came, less however long they were on their way.
  double clock_offset_seconds(std::size_t node) const { return agents_[node].clock_offset_seconds; }

 private:
  enum class State { kWaiting, kStarting, kAnswered, kFailed, kLost };
  struct Agent {
    AllocatedNode node;
    std::optional<std::size_t> via;   // the agent through which this one is reached
    std::vector<std::size_t> branch;  // those that are reached through this one
    NodeStarter* starter = nullptr;
    std::unique_ptr<AgentConnection> connection;
    std::vector<std::unique_ptr<AgentConnection>> given_up;  // earlier attempts, to be cleaned up
    EventLoop::Timer deadline;
    EventLoop::Timer retry;
    std::chrono::steady_clock::time_point began;
    State state = State::kWaiting;
    int attempts = 0;
    std::string last_failure;  ///< of an attempt that is made again
    double answer_seconds = 0;
    double clock_offset_seconds = 0;
  };

  Status begin(std::size_t node);
  void listen_to(std::size_t node);
  std::string errors_so_far(std::size_t node) const;
  void start_waiting();
  Status on_frame(std::size_t node, net::Frame&& frame);
  void on(std::size_t node, message::Heartbeat&&);
  void on(std::size_t node, message::Facts&& facts);
  void on(std::size_t via, message::Routed&& routed);
  void on(std::size_t node, message::RendezvousReady&& rendezvous);
  void on(std::size_t via, message::AgentDown&& down);
  void on(std::size_t node, message::AgentFailed&& failed);
  void on(std::size_t node, message::Finished&& finished);
  void on_lost(std::size_t node, const std::string& how);
  void start_branch(std::size_t node);
  void start_groups(std::size_t node);
  bool is_unsettled(std::size_t node) const {
    return agents_[node].state == State::kWaiting || agents_[node].state == State::kStarting;
  }
  void on_failed(std::size_t node, StartFailure failure);
  void settle(std::size_t node, State state);

  EventLoop& loop_;
  Settings settings_;
  std::unique_ptr<AgentGroups> groups_;  // none: agents are started one by one
  Handlers handlers_;
  std::vector<Agent> agents_;
  std::vector<NodeFacts> facts_;
  std::vector<Failure> failures_;
  std::deque<std::size_t> waiting_;
  std::size_t unsettled_ = 0;
  int starting_ = 0;
};

}  // namespace ddl::launcher
