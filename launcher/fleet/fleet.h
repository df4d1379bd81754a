// All agents of a job: they are started, directly or as a tree (--fan-out), and each sends and receives
// messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  int first = 0;
  std::vector<int> rest;
  bool operator==(const Branch&) const = default;
};

/// At most fan_out branches of nearly the same size, in order; one for each node if fan_out is 0 or not less
/// than their number. Pure.
std::vector<Branch> divide(const std::vector<int>& nodes, int fan_out);

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
    std::function<Status(int node, net::Frame&&)> on_report;
    /// An agent that had answered is lost: one sentence without the node's name.
    std::function<void(int node, const std::string& how)> on_lost;
    std::function<void(int node)> on_answered;  ///< its facts are here
    std::function<void(int node, const std::string& why)> on_failed;
    /// Only set by a relay: a message from a node that it reaches through another relay, to be forwarded unread.
    std::function<void(int node, net::Frame&&)> on_routed{};
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
  void select(const std::vector<int>& nodes);

  void send(int node, const message::HeadToAgent& message);
  void send_all(const message::HeadToAgent& message);
  /// Sends a frame of message::ForAllAgents once to each agent that this process has started; these pass it on.
  void broadcast(const net::Frame& frame);
  /// Sends a message that is encoded already, as a relay does.
  void forward(int node, net::Frame&& frame);
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
  const std::map<int, std::string>& failures() const { return failures_; }
  /// The names of the hosts whose agents did not start, could not go on, or are lost. Not those that are only lost with
  /// the one through which they were reached.
  std::vector<std::string> failed_hosts() const;
  int size() const { return static_cast<int>(nodes_.size()); }
  /// Bytes that were sent to all agents, and received from them.
  std::pair<std::int64_t, std::int64_t> traffic() const;
  const std::string& name(int node) const { return agents_[nodes_[node]].node.name; }
  /// Nodes whose agents have not answered yet.
  std::vector<int> missing() const;
  /// The node whose agent took longest to answer.
  int slowest() const;
  /// Seconds from an agent's start to its facts; 0 until then.
  double answer_seconds(int node) const { return agents_[node].answer_seconds; }
  /// The part of these seconds before its greeting, which is ssh's. 0 for an agent that sends no greeting or is
  /// reached through another agent.
  double connect_seconds(int node) const;
  /// Its clock minus ours when its facts arrived; too small by the time that they were in transit.
  double clock_offset_seconds(int node) const { return agents_[node].clock_offset_seconds; }

 private:
  /// In this order; an agent that has failed or is lost stays so.
  enum class Phase {
    kWaiting,   // for its turn to be started
    kStarting,  // until its facts have arrived, with pauses between attempts
    kAnswered,
    kFailed,  // it did not start
    kLost,    // after it had answered
  };
  struct Agent {
    AllocatedNode node;
    std::optional<int> via;   // the agent through which this one is reached
    std::vector<int> branch;  // the agents that are reached through this one
    NodeStarter* starter = nullptr;
    std::unique_ptr<AgentConnection> connection;
    std::vector<std::unique_ptr<AgentConnection>> given_up;  // earlier attempts, to be cleaned up
    EventLoop::Timer deadline;
    EventLoop::Timer retry;
    std::chrono::steady_clock::time_point began;
    Phase phase = Phase::kWaiting;
    int attempts = 0;
    std::string last_failure;  ///< of the previous attempt; "": this is the first
    bool is_at_fault = false;  ///< it did not start, gave up or is lost, and the agent before it was there
    double answer_seconds = 0;
    double clock_offset_seconds = 0;
  };

  // Here a node is an index into agents_, which select() does not change.
  Status begin(int node);
  void listen_to(int node);
  std::string errors_so_far(int node) const;
  void start_waiting();
  Status on_frame(int node, net::Frame&& frame);
  void on(int node, message::Heartbeat&&);
  void on(int node, message::Facts&& facts);
  void on(int via, message::Routed&& routed);
  void on(int node, message::RendezvousReady&& rendezvous);
  void on(int via, message::AgentDown&& down);
  void on(int node, message::AgentFailed&& failed);
  void on(int node, message::Finished&& finished);
  void on_lost(int node, const std::string& how);
  void send_to(int node, net::Frame&& frame);
  Status report(int node, net::Frame&& frame);
  void start_branch(int node);
  void start_groups(int node);
  bool is_pending(int node) const { return agents_[node].phase < Phase::kAnswered; }
  bool is_gone(int node) const { return agents_[node].phase > Phase::kAnswered; }
  /// The number of the node comes from another process.
  bool is_reached_through(int via, int node) const {
    return node >= 0 && node < std::ssize(agents_) && agents_[node].via == via;
  }
  void on_failed(int node, const Error& why);
  void complete_startup(int node, Phase phase);

  EventLoop& loop_;
  SshSettings ssh_;
  AgentGroupStarter* group_starter_;
  std::unique_ptr<AgentGroups> groups_;  // none: agents are started one by one
  Handlers handlers_;
  std::vector<Agent> agents_;
  std::vector<int> nodes_;                   // by number: the index of its agent
  std::vector<std::optional<int>> numbers_;  // by index of the agent
  std::vector<NodeFacts> facts_;
  std::map<int, std::string> failures_;
  std::deque<int> waiting_;
  std::size_t pending_ = 0;
  int starting_ = 0;
};

}  // namespace ddl::launcher
