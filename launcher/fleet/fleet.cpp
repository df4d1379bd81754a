#include "launcher/fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>

#include "launcher/fleet/ssh/ssh_failure.h"

namespace ddl::launcher {
namespace {

// A bastion or an sshd with MaxStartups drops connections while it is busy: the next attempt waits longer each time.
constexpr int kMostAttempts = 6;
constexpr auto kFirstPause = std::chrono::milliseconds(250);

}  // namespace

Status Fleet::start(const Allocation& allocation, std::vector<NodeStarter*> starters) {
  DDL_CHECK(starters.size() == allocation.nodes.size(), std::to_string(starters.size()) + " starters");
  agents_.resize(allocation.nodes.size());
  facts_.resize(agents_.size());
  unsettled_ = agents_.size();
  for (std::size_t node = 0; node < agents_.size(); ++node) {
    agents_[node].node = allocation.nodes[node];
    agents_[node].starter = starters[node];
    if (starters[node]->forks()) {
      DDL_TRY(begin(node));
    } else {
      waiting_.push_back(node);
    }
  }
  return {};
}

Status Fleet::begin(std::size_t node) {
  Agent& agent = agents_[node];
  auto started = agent.starter->start(agent.node);
  if (!started) return tl::unexpected(started.error());
  ++starting_;
  ++agent.attempts;
  agent.state = State::kStarting;
  agent.connection = std::make_unique<AgentConnection>(loop_, std::move(*started));
  return {};
}

void Fleet::listen(Handlers handlers) {
  handlers_ = std::move(handlers);
  for (std::size_t node = 0; node < agents_.size(); ++node) {
    if (agents_[node].state == State::kStarting) listen_to(node);
  }
  start_waiting();
}

void Fleet::listen_to(std::size_t node) {
  Agent& agent = agents_[node];
  if (agent.attempts == 1) {
    agent.began = std::chrono::steady_clock::now();
    if (settings_.start_timeout_seconds > 0) {
      agent.deadline =
          loop_.after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                          std::chrono::duration<double>(settings_.start_timeout_seconds)),
                      [this, node] {
                        agents_[node].attempts = kMostAttempts;
                        on_failed(node, {fmt::format("it has not answered within {:g} s (--start-timeout){}",
                                                     settings_.start_timeout_seconds, said_by(node))});
                      });
    }
  }
  agent.connection->begin({[this, node](message::Any&& m) { on_message(node, std::move(m)); },
                           [this, node](StartFailure failure) { on_failed(node, std::move(failure)); },
                           [this, node](const std::string& how) {
                             Agent& lost = agents_[node];
                             if (lost.state == State::kStarting) return on_failed(node, {how});
                             lost.state = State::kLost;
                             handlers_.on_lost(node, lost.node.name + ": " + how);
                           }});
}

std::string Fleet::said_by(std::size_t node) const {
  const auto& connection = agents_[node].connection;
  const std::string said = connection ? telling_lines(connection->errors()) : "";
  return said.empty() ? "" : "; so far it wrote: " + said;
}

void Fleet::start_waiting() {
  while (!waiting_.empty() && starting_ < settings_.parallel) {
    const std::size_t node = waiting_.front();
    waiting_.pop_front();
    if (const auto begun = begin(node)) {
      listen_to(node);
    } else {
      ++starting_;
      loop_.post([this, node, error = begun.error()] { on_failed(node, {error.message()}); });
    }
  }
}

void Fleet::on_message(std::size_t node, message::Any&& message) {
  Agent& agent = agents_[node];
  if (auto* facts = std::get_if<message::Facts>(&message)) {
    if (agent.state != State::kStarting) return;
    facts_[node] = std::move(facts->facts);
    agent.answer_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - agent.began).count();
    agent.clock_offset_seconds =
        std::chrono::duration<double>(std::chrono::nanoseconds(facts_[node].wall_time_ns) -
                                      std::chrono::system_clock::now().time_since_epoch())
            .count();
    return settle(node, State::kAnswered);
  }
  if (auto* failed = std::get_if<message::AgentFailed>(&message); failed && agent.state == State::kStarting) {
    agent.attempts = kMostAttempts;
    return on_failed(node, {failed->text});
  }
  if (std::holds_alternative<message::Finished>(message)) agent.connection->expect_end();
  handlers_.on_message(node, std::move(message));
}

void Fleet::on_failed(std::size_t node, StartFailure failure) {
  Agent& agent = agents_[node];
  if (agent.state == State::kFailed) return;
  if (agent.connection) agent.connection->stop_listening();
  if (failure.is_worth_a_retry && agent.attempts < kMostAttempts) {
    agent.given_up.push_back(std::move(agent.connection));
    agent.retry = loop_.after(kFirstPause * (1 << (agent.attempts - 1)), [this, node] {
      --starting_;
      if (const auto begun = begin(node)) {
        listen_to(node);
      } else {
        ++starting_;
        on_failed(node, {begun.error().message()});
      }
    });
    return;
  }
  failures_.push_back({node, std::move(failure.sentence)});
  settle(node, State::kFailed);
}

void Fleet::settle(std::size_t node, State state) {
  agents_[node].state = state;
  agents_[node].deadline.cancel();
  agents_[node].retry.cancel();
  --starting_;
  --unsettled_;
  start_waiting();
  if (unsettled_ > 0) return;
  std::sort(failures_.begin(), failures_.end(),
            [](const Failure& a, const Failure& b) { return a.node < b.node; });
  handlers_.on_settled();
}

std::vector<std::size_t> Fleet::missing() const {
  std::vector<std::size_t> nodes;
  for (std::size_t node = 0; node < agents_.size(); ++node) {
    if (agents_[node].state == State::kWaiting || agents_[node].state == State::kStarting)
      nodes.push_back(node);
  }
  return nodes;
}

void Fleet::send(std::size_t node, const message::Any& message) {
  if (agents_[node].connection) agents_[node].connection->send(message);
}

void Fleet::send_all(const message::Any& message) {
  for (std::size_t node = 0; node < agents_.size(); ++node) send(node, message);
}

void Fleet::dismiss(std::size_t node) {
  if (agents_[node].connection) agents_[node].connection->close();
}

void Fleet::flush() {
  for (Agent& agent : agents_) {
    if (agent.connection) agent.connection->flush();
  }
}

void Fleet::shut_down(Deadline deadline) {
  for (Agent& agent : agents_) {
    agent.deadline.cancel();
    agent.retry.cancel();
    if (agent.connection) agent.connection->close();
    for (auto& attempt : agent.given_up) attempt->close();
  }
  // What was forked from here last: its clean-up takes every child of this process, and the others have theirs.
  for (const bool forked : {false, true}) {
    for (Agent& agent : agents_) {
      if (agent.starter == nullptr || agent.starter->forks() != forked) continue;
      if (agent.connection) agent.connection->clean_up(deadline);
      for (auto& attempt : agent.given_up) attempt->clean_up(deadline);
    }
  }
}

}  // namespace ddl::launcher
