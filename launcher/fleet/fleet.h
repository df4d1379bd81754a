// All agents of a job: they are started, directly or as a tree (--fan-out), and each sends and receives
// messages.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/fleet/agent_connection.h"
#include "launcher/fleet/agent_groups.h"
#include "launcher/fleet/node_starter.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/node_facts.h"
#include "launcher/protocol/messages.h"
#include "net/frame.h"

namespace ddl::launcher {

/// One subtree of the tree of agents: a host that is connected to directly, and the hosts that its agent connects to.
struct Branch {
  std::size_t first = 0;
  std::vector<std::size_t> rest;
  bool operator==(const Branch&) const = default;
};

/// At most fan_out branches of nearly the same size, in order; one for each node if fan_out is 0 or not less
/// than their number. Pure.
std::vector<Branch> divide(const std::vector<std::size_t>& nodes, int fan_out);

/// All agents of a job: one for each node of the allocation, which has a number. Handlers run on the loop's thread.
///
/// A job may not use all nodes: from select() on, a node's number is its place among those that it uses, as its ranks
/// know it (PMIX_NODEID), and the others have none.
///
/// With a fan-out, agents that need no fork are started as a tree: this process starts at most fan_out of them, and
/// each of these starts its share of the others and relays their messages. With a group starter, the first agent
/// relays the messages of those that join it. The user of a fleet sees no difference.
class Fleet {
 public:
  struct Handlers {
    /// Called once, when every agent has sent its facts or has failed; failures() lists those that failed.
    std::function<void()> on_startup_complete;
    /// A message that the fleet does not read itself, still encoded: a NodeReport for the head. An error states
    /// what the agent sent, and ends the link.
    std::function<Status(std::size_t node, net::Frame&&)> on_report;
    /// An agent that had answered is lost: one sentence without the node's name.
    std::function<void(std::size_t node, const std::string& how)> on_lost;
    std::function<void(std::size_t node)> on_answered;  ///< its facts are here
    std::function<void(std::size_t node, const std::string& why)> on_failed;
    /// Only set by a relay: a message from a node that it reaches through another relay, to be forwarded unread.
    std::function<void(std::size_t node, net::Frame&&)> on_routed{};
  };

  /// group_starter: starts the agents of several nodes at once, and outlives the fleet; null: none does.
  explicit Fleet(EventLoop& loop, SshSettings ssh, AgentGroupStarter* group_starter = nullptr)
      : loop_(loop), ssh_(std::move(ssh)), group_starter_(group_starter) {}

  /// starters[i] starts the agent of node i and outlives the fleet. Starts the agents that are forked, so it must
  /// be called before any thread is started. Error: one of these could not be started.
  Status start(const Allocation& allocation, std::vector<NodeStarter*> starters);
  /// Starts the others, SshSettings::parallel at the same time, and calls the handlers from now on.
  void listen(Handlers handlers);

  /// Uses only these of the nodes so far, which get new numbers. The agents of the others are asked to finish: they have
  /// nothing to do but to relay, and nothing is heard of them.
  void select(const std::vector<std::size_t>& nodes);

  void send(std::size_t node, const message::HeadToAgent& message);
  void send_all(const message::HeadToAgent& message);
  /// Sends a frame of message::ForAllAgents once to each agent that this process has started; these pass it on.
  void broadcast(const net::Frame& frame);
  /// Sends a message that is encoded already, as a relay does.
  void forward(std::size_t node, net::Frame&& frame);
  /// Blocks until what was sent has left, for a moment at most.
  void flush();
  /// Stops this process, as the shell expects after ^Z: agents will not miss its heartbeats.
  void stop_self();
  /// To be called after SIGCHLD: an agent that is a child of this process may have been stopped.
  void check_children();
  /// Closes the links and returns when the agents are gone; kills them after the deadline.
  void shut_down(Deadline deadline);

  /// The facts by number before select().
  const std::vector<NodeFacts>& facts() const { return facts_; }  ///< empty where an agent has failed
  /// Why agents did not start, by node: one sentence without the node's name.
  const std::map<std::size_t, std::string>& failures() const { return failures_; }
  std::size_t size() const { return nodes_.size(); }
  const std::string& name(std::size_t node) const { return agents_[nodes_[node]].node.name; }
  /// Nodes whose agents have not answered yet.
  std::vector<std::size_t> missing() const;
  /// The node whose agent took longest to answer.
  std::size_t slowest() const;
  /// Seconds from an agent's start to its facts; 0 until then.
  double answer_seconds(std::size_t node) const { return agents_[node].answer_seconds; }
  /// The part of these seconds before its greeting, which is ssh's. 0 for an agent that sends no greeting or is
  /// reached through another agent.
  double connect_seconds(std::size_t node) const;
  /// Its clock minus ours when its facts arrived; too small by the time that they were in transit.
  double clock_offset_seconds(std::size_t node) const { return agents_[node].clock_offset_seconds; }

 private:
  enum class State { kWaiting, kStarting, kAnswered, kFailed, kLost };
  struct Agent {
    AllocatedNode node;
    std::optional<std::size_t> via;   // the agent through which this one is reached
    std::vector<std::size_t> branch;  // the agents that are reached through this one
    NodeStarter* starter = nullptr;
    std::unique_ptr<AgentConnection> connection;
    std::vector<std::unique_ptr<AgentConnection>> given_up;  // earlier attempts, to be cleaned up
    EventLoop::Timer deadline;
    EventLoop::Timer retry;
    std::chrono::steady_clock::time_point began;
    State state = State::kWaiting;
    int attempts = 0;
    std::string last_failure;  ///< of the previous attempt; "": this is the first
    double answer_seconds = 0;
    double clock_offset_seconds = 0;
  };

  // Here a node is an index into agents_, which select() does not change.
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
  void send_to(std::size_t node, net::Frame&& frame);
  Status report(std::size_t node, net::Frame&& frame);
  void start_branch(std::size_t node);
  void start_groups(std::size_t node);
  bool is_pending(std::size_t node) const {
    return agents_[node].state == State::kWaiting || agents_[node].state == State::kStarting;
  }
  void on_failed(std::size_t node, const Error& why);
  void complete_startup(std::size_t node, State state);

  EventLoop& loop_;
  SshSettings ssh_;
  AgentGroupStarter* group_starter_;
  std::unique_ptr<AgentGroups> groups_;  // none: agents are started one by one
  Handlers handlers_;
  std::vector<Agent> agents_;
  std::vector<std::size_t> nodes_;                   // by number: the index of its agent
  std::vector<std::optional<std::size_t>> numbers_;  // by index of the agent
  std::vector<NodeFacts> facts_;
  std::map<std::size_t, std::string> failures_;
  std::deque<std::size_t> waiting_;
  std::size_t pending_ = 0;
  int starting_ = 0;
};

}  // namespace ddl::launcher
