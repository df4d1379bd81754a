#include "launcher/node/relay.h"

#include <algorithm>

#include "launcher/fleet/rendezvous.h"
#include "launcher/fleet/ssh.h"
#include "launcher/protocol/codec.h"

namespace ddl::launcher {
namespace {

Result<std::unique_ptr<RendezvousStarter>> listen_for(const message::StartAgents& branch) {
  DDL_ASSIGN(key, net::JobKey::from_hex(branch.key));
  return RendezvousStarter::listen(std::move(key), branch.nonce);
}

}  // namespace

void Relay::start(const message::StartAgents& branch) {
  if (fleet_ || branch.nodes.empty()) return;
  Allocation allocation;
  for (const message::RemoteNode& node : branch.nodes) {
    AllocatedNode allocated;
    allocated.name = node.name;
    if (!node.user.empty()) allocated.user = node.user;
    if (node.port > 0) allocated.port = node.port;
    allocation.nodes.push_back(std::move(allocated));
    numbers_.push_back(node.number);
  }
  int port = 0;
  if (branch.key.empty()) {
    starter_ = make_ssh_starter(branch.ssh);
  } else if (auto rendezvous = listen_for(branch)) {
    port = (*rendezvous)->port();
    starter_ = *std::move(rendezvous);
  } else {
    for (const int number : numbers_) report_(message::AgentDown{number, rendezvous.error().message()});
    return;
  }
  fleet_.emplace(loop_, branch.ssh);
  // Fails only for starters that fork, and this one does not.
  (void)fleet_->start(allocation, std::vector<NodeStarter*>(allocation.nodes.size(), starter_.get()));
  Fleet::Handlers handlers;
  handlers.on_answered = [this](int node) {
    pass_up(node, message::encode<message::AgentToHead>(message::Facts{fleet_->facts()[node]}));
  };
  handlers.on_failed = [this](int node, const std::string& why) {
    report_(message::AgentDown{numbers_[node], why});
  };
  handlers.on_report = [this](int node, net::Frame&& frame) -> Status {
    pass_up(node, std::move(frame));
    return {};
  };
  handlers.on_routed = [this](int node, net::Frame&& frame) { pass_up(node, std::move(frame)); };
  handlers.on_lost = [this](int node, const std::string& how) {
    report_(message::AgentDown{numbers_[node], how});
  };
  fleet_->listen(std::move(handlers));
  // Only now, when the rendezvous expects all of them.
  if (port != 0) report_(message::RendezvousReady{port});
}

void Relay::pass_up(int node, net::Frame&& frame) {
  report_(message::Routed{numbers_[node], frame.type, std::move(frame.payload)});
}

void Relay::pass_down(message::Routed&& routed) {
  const auto found = std::find(numbers_.begin(), numbers_.end(), routed.node);
  if (!fleet_ || found == numbers_.end()) return;
  fleet_->forward(static_cast<int>(found - numbers_.begin()), {routed.type, std::move(routed.payload)});
}

void Relay::pass_to_all(const net::Frame& frame) {
  if (fleet_) fleet_->broadcast(frame);
}

void Relay::shut_down(Deadline deadline) {
  if (fleet_) fleet_->shut_down(deadline);
}

}  // namespace ddl::launcher
