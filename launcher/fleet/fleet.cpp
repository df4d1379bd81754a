#include "launcher/fleet/fleet.h"

#include <algorithm>
#include <csignal>
#include <numeric>

#include <fmt/format.h>

#include "contract/version.h"
#include "launcher/fleet/stream_tail.h"
#include "launcher/protocol/codec.h"

namespace ddl::launcher {

std::vector<Branch> divide(const std::vector<int>& nodes, int fan_out) {
  const std::ptrdiff_t size = std::ssize(nodes),
                       count = fan_out > 0 ? std::min<std::ptrdiff_t>(size, fan_out) : size;
  std::vector<Branch> branches;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto begin = nodes.begin() + size * i / count, end = nodes.begin() + size * (i + 1) / count;
    branches.push_back({*begin, {begin + 1, end}});
  }
  return branches;
}

namespace {

// A bastion or an sshd with MaxStartups drops connections while it is busy: the next attempt waits longer
// each time.
constexpr int kMaxAttempts = 6;
constexpr auto kFirstPause = std::chrono::milliseconds(250);
// The agents of a group join after the first agent is there: with few nodes a process for each is faster
// (decision 23).
constexpr std::size_t kMinForGroup = 9;

}  // namespace

Status Fleet::start(const Allocation& allocation, std::vector<NodeStarter*> starters) {
  DDL_CHECK(starters.size() == allocation.nodes.size(), std::to_string(starters.size()) + " starters");
  agents_.resize(allocation.nodes.size());
  facts_.resize(agents_.size());
  nodes_.resize(agents_.size());
  std::iota(nodes_.begin(), nodes_.end(), 0);
  numbers_.assign(nodes_.begin(), nodes_.end());
  pending_ = agents_.size();
  std::vector<int> elsewhere;
  for (int node = 0; node < std::ssize(agents_); ++node) {
    agents_[node].node = allocation.nodes[node];
    agents_[node].starter = starters[node];
    if (starters[node]->forks()) {
      DDL_TRY(begin(node));
    } else {
      elsewhere.push_back(node);
    }
  }
  if (group_starter_ != nullptr && elsewhere.size() >= kMinForGroup) {
    DDL_ASSIGN(groups, AgentGroups::make(loop_, *group_starter_));
    groups_ = std::move(groups);
  }
  for (Branch& branch : divide(elsewhere, groups_ ? 1 : ssh_.fan_out)) {
    waiting_.push_back(branch.first);
    for (const int node : branch.rest) agents_[node].via = branch.first;
    agents_[branch.first].branch = std::move(branch.rest);
  }
  return {};
}

Status Fleet::begin(int node) {
  Agent& agent = agents_[node];
  DDL_ASSIGN(started, agent.starter->start(agent.node));
  ++starting_;
  ++agent.attempts;
  agent.phase = Phase::kStarting;
  agent.connection = std::make_unique<AgentConnection>(loop_, std::move(started));
  return {};
}

void Fleet::listen(Handlers handlers) {
  handlers_ = std::move(handlers);
  for (int node = 0; node < std::ssize(agents_); ++node) {
    if (agents_[node].phase == Phase::kStarting) listen_to(node);
  }
  start_waiting();
  for (int node = 0; groups_ && node < std::ssize(agents_); ++node) {
    if (!agents_[node].branch.empty()) start_groups(node);
  }
}

/// Starts them at the same time as the agent that they will join. They get its addresses when it has answered.
void Fleet::start_groups(int node) {
  std::vector<AllocatedNode> nodes;
  for (const int other : agents_[node].branch) nodes.push_back(agents_[other].node);
  groups_->start(nodes, [this, node](const std::vector<int>& positions, const Error& why) {
    for (const int position : positions) on_failed(agents_[node].branch[position], why);
  });
}

void Fleet::listen_to(int node) {
  Agent& agent = agents_[node];
  if (agent.attempts == 1) {
    agent.began = std::chrono::steady_clock::now();
    if (ssh_.start_timeout_seconds > 0) {
      agent.deadline =
          loop_.after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                          std::chrono::duration<double>(ssh_.start_timeout_seconds)),
                      [this, node] {
                        agents_[node].attempts = kMaxAttempts;
                        on_failed(node, {ErrorCode::kTimeout,
                                         fmt::format("it has not answered within {:g} s (--start-timeout){}",
                                                     ssh_.start_timeout_seconds.value, errors_so_far(node))});
                      });
    }
  }
  agent.connection->begin({[this, node](net::Frame&& frame) { return on_frame(node, std::move(frame)); },
                           [this, node](const Error& why) { on_failed(node, why); },
                           [this, node](const std::string& how) { on_lost(node, how); }});
}

int Fleet::slowest() const {
  const auto last = std::max_element(agents_.begin(), agents_.end(), [](const auto& one, const auto& other) {
    return one.answer_seconds < other.answer_seconds;
  });
  return static_cast<int>(last - agents_.begin());
}

double Fleet::connect_seconds(int node) const {
  const auto& connection = agents_[node].connection;
  if (!connection || !connection->greeted_at()) return 0;
  return std::chrono::duration<double>(*connection->greeted_at() - agents_[node].began).count();
}

std::string Fleet::errors_so_far(int node) const {
  const auto& connection = agents_[node].connection;
  const std::string errors = connection ? last_error_lines(connection->errors()) : "";
  if (!errors.empty()) return "; so far it wrote: " + errors;
  const std::string& earlier = agents_[node].last_failure;
  return earlier.empty() ? "" : "; the previous attempt: " + earlier;
}

void Fleet::start_waiting() {
  while (!waiting_.empty() && starting_ < ssh_.parallel) {
    const int node = waiting_.front();
    waiting_.pop_front();
    if (const auto begun = begin(node)) {
      listen_to(node);
    } else {
      ++starting_;
      loop_.post([this, node, error = begun.error()] { on_failed(node, error); });
    }
  }
}

Status Fleet::on_frame(int node, net::Frame&& frame) {
  if (!message::is_in<message::FleetReport>(frame)) return report(node, std::move(frame));
  DDL_ASSIGN(report, message::decode<message::FleetReport>(frame));
  std::visit([this, node](auto& message) { on(node, std::move(message)); }, report);
  return {};
}

void Fleet::on(int, message::Heartbeat&&) {}  // the connection has counted it

void Fleet::on(int node, message::Facts&& message) {
  if (!is_pending(node)) return;
  Agent& agent = agents_[node];
  if (message.facts.version != contract::kVersion) {
    return on_failed(node, {ErrorCode::kUnavailable, "ddlrun there is version " + message.facts.version +
                                                         ", and this one is " + contract::kVersion +
                                                         "; install the same one there"});
  }
  facts_[node] = std::move(message.facts);
  const Agent& direct = agent.via ? agents_[*agent.via] : agent;
  agent.answer_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - direct.began).count();
  agent.clock_offset_seconds =
      std::chrono::duration<double>(std::chrono::nanoseconds(facts_[node].wall_time_ns) -
                                    std::chrono::system_clock::now().time_since_epoch())
          .count();
  if (!agent.branch.empty()) start_branch(node);
  if (handlers_.on_answered) handlers_.on_answered(node);
  complete_startup(node, Phase::kAnswered);
}

void Fleet::start_branch(int node) {
  message::StartAgents branch;
  for (const int other : agents_[node].branch) {
    const AllocatedNode& allocated = agents_[other].node;
    branch.nodes.push_back({other, allocated.name, allocated.user.value_or(""), allocated.port.value_or(0)});
  }
  branch.ssh = ssh_;
  if (groups_) {
    groups_->describe_rendezvous(branch);
    // They connect by themselves and are all expected at once.
    branch.ssh.parallel = branch.nodes.size();
    branch.ssh.fan_out = 0;
  }
  send_to(node, message::encode<message::HeadToAgent>(branch));
}

void Fleet::on(int via, message::Routed&& routed) {
  const int node = routed.node;
  if (!is_reached_through(via, node)) return;
  if (is_gone(node)) return;
  net::Frame frame{routed.type, std::move(routed.payload)};
  if (handlers_.on_routed) return handlers_.on_routed(node, std::move(frame));
  if (const Status accepted = on_frame(node, std::move(frame)); !accepted)
    on_lost(node, "its agent sent " + accepted.error().message());
}

void Fleet::on(int node, message::RendezvousReady&& rendezvous) {
  if (groups_) groups_->join(rendezvous, facts_[node]);
}

void Fleet::on(int via, message::AgentDown&& down) {
  if (is_reached_through(via, down.node)) on_lost(down.node, down.why);
}

void Fleet::on(int node, message::AgentFailed&& failed) {
  if (!is_pending(node)) {
    agents_[node].is_at_fault = true;
    (void)report(node, message::encode<message::NodeReport>(std::move(failed)));
    return;
  }
  agents_[node].attempts = kMaxAttempts;
  on_failed(node, {ErrorCode::kUnavailable, failed.text});
}

void Fleet::on(int node, message::Finished&& finished) {
  if (agents_[node].connection) agents_[node].connection->expect_end();
  (void)report(node, message::encode<message::NodeReport>(finished));
}

void Fleet::on_lost(int node, const std::string& how) {
  Agent& agent = agents_[node];
  if (is_pending(node)) return on_failed(node, {ErrorCode::kClosed, how});
  if (is_gone(node)) return;
  agent.is_at_fault |= !agent.via || !is_gone(*agent.via);
  agent.phase = Phase::kLost;
  if (numbers_[node]) handlers_.on_lost(*numbers_[node], how);
  for (const int other : agent.branch)
    on_lost(other, "it is reached through " + agent.node.name + ", which is lost");
}

void Fleet::on_failed(int node, const Error& why) {
  Agent& agent = agents_[node];
  if (!is_pending(node)) return;
  if (agent.connection) agent.connection->stop_listening();
  if (why.is_worth_a_retry() && agent.attempts < kMaxAttempts) {
    agent.given_up.push_back(std::move(agent.connection));
    agent.last_failure = why.message();
    agent.retry = loop_.after(kFirstPause * (1 << (agent.attempts - 1)), [this, node] {
      --starting_;
      if (const auto begun = begin(node)) {
        listen_to(node);
      } else {
        ++starting_;
        on_failed(node, begun.error());
      }
    });
    return;
  }
  std::string sentence = why.message();
  if (groups_ && agent.via) {
    if (const std::string error = groups_->error_of(agent.node.name); !error.empty())
      sentence += ": " + error;
  }
  failures_[node] = sentence;
  if (handlers_.on_failed) handlers_.on_failed(node, sentence);
  agent.is_at_fault = !agent.via || !is_gone(*agent.via);
  complete_startup(node, Phase::kFailed);
  for (const int other : agent.branch)
    on_failed(other, {ErrorCode::kUnavailable,
                      "it is reached through " + agent.node.name + ", which did not come up"});
}

void Fleet::complete_startup(int node, Phase phase) {
  agents_[node].phase = phase;
  agents_[node].deadline.cancel();
  agents_[node].retry.cancel();
  --pending_;
  if (!agents_[node].via) {
    --starting_;
    start_waiting();
  }
  if (pending_ > 0) return;
  if (handlers_.on_startup_complete) handlers_.on_startup_complete();
}

std::vector<int> Fleet::missing() const {
  std::vector<int> nodes;
  for (int node = 0; node < std::ssize(agents_); ++node) {
    if (is_pending(node)) nodes.push_back(node);
  }
  return nodes;
}

void Fleet::select(const std::vector<int>& nodes) {
  const std::vector<int> before = std::exchange(nodes_, {});
  numbers_.assign(agents_.size(), std::nullopt);
  for (const int node : nodes) {
    numbers_[before.at(node)] = nodes_.size();
    nodes_.push_back(before[node]);
  }
  for (const int node : before) {
    if (!numbers_[node]) send_to(node, message::encode<message::HeadToAgent>(message::Finish{}));
  }
}

std::vector<std::string> Fleet::failed_hosts() const {
  std::vector<std::string> names;
  for (const Agent& agent : agents_) {
    if (agent.is_at_fault) names.push_back(agent.node.name);
  }
  return names;
}

std::pair<std::int64_t, std::int64_t> Fleet::traffic() const {
  std::pair<std::int64_t, std::int64_t> sum;
  for (const Agent& agent : agents_) {
    if (!agent.connection) continue;
    sum.first += agent.connection->sent_bytes();
    sum.second += agent.connection->received_bytes();
  }
  return sum;
}

Status Fleet::report(int node, net::Frame&& frame) {
  return numbers_[node] ? handlers_.on_report(*numbers_[node], std::move(frame)) : Status();
}

void Fleet::send(int node, const message::HeadToAgent& message) { forward(node, message::encode(message)); }

void Fleet::send_all(const message::HeadToAgent& message) {
  for (const int node : nodes_) send_to(node, message::encode(message));
}

void Fleet::broadcast(const net::Frame& frame) {
  for (const Agent& agent : agents_) {
    if (!agent.via && agent.connection) agent.connection->send(frame);
  }
}

void Fleet::forward(int node, net::Frame&& frame) { send_to(nodes_.at(node), std::move(frame)); }

void Fleet::send_to(int node, net::Frame&& frame) {
  const Agent& agent = agents_[node];
  if (agent.via) {
    if (is_gone(node)) return;
    message::Routed routed{node, frame.type, std::move(frame.payload)};
    return send_to(*agent.via, message::encode<message::HeadToAgent>(std::move(routed)));
  }
  if (agent.connection) agent.connection->send(frame);
}

void Fleet::stop_self() {
  for (int node = 0; node < std::ssize(agents_); ++node)
    send_to(node, message::encode<message::HeadToAgent>(message::Pausing{}));
  flush();
  ::raise(SIGSTOP);
}

void Fleet::flush() {
  for (Agent& agent : agents_) {
    if (agent.connection) agent.connection->flush();
  }
}

void Fleet::check_children() {
  for (Agent& agent : agents_) {
    if (agent.connection) agent.connection->check_child();
  }
}

void Fleet::shut_down(Deadline deadline) {
  for (Agent& agent : agents_) {
    agent.deadline.cancel();
    agent.retry.cancel();
    if (agent.connection) agent.connection->close();
    for (auto& attempt : agent.given_up) attempt->close();
  }
  if (groups_) groups_->shut_down(deadline);
  // Forked agents last: their clean-up ends every child of this process, and the other agents must have ended
  // theirs in order before.
  for (const bool forked : {false, true}) {
    for (Agent& agent : agents_) {
      if (agent.starter == nullptr || agent.starter->forks() != forked) continue;
      if (agent.connection) agent.connection->clean_up(deadline);
      for (auto& attempt : agent.given_up) attempt->clean_up(deadline);
    }
  }
}

}  // namespace ddl::launcher
