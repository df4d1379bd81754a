#include "launcher/fleet/fleet.h"

#include "contract/version.h"
#include "launcher/fleet/stream_link.h"
#include "launcher/message/codec.h"

namespace ddl::launcher {

Status Fleet::start(const Allocation& allocation, NodeStarter& starter) {
  for (const AllocatedNode& node : allocation.nodes) {
    auto started = starter.start(node);
    if (!started) return fail(started.error());
    agents_.push_back({node.name,
                       make_stream_link(loop_, std::move(started->read), std::move(started->write)),
                       std::move(started->process)});
  }
  facts_.resize(agents_.size());
  missing_facts_ = agents_.size();
  return {};
}

void Fleet::listen(Handlers handlers) {
  handlers_ = std::move(handlers);
  for (std::size_t node = 0; node < agents_.size(); ++node) {
    agents_[node].link->start({[this, node](const net::Frame& frame) { on_frame(node, frame); },
                               [this, node](const std::string& reason) { on_closed(node, reason); }});
  }
}

void Fleet::message_link(std::size_t node, const message::Any& message) {
  if (!agents_[node].lost) message::send(*agents_[node].link, message);
}

void Fleet::send_all(const message::Any& message) {
  for (std::size_t node = 0; node < agents_.size(); ++node) send(node, message);
}

void Fleet::flush() {
  for (Agent& agent : agents_) {
    if (!agent.lost) agent.link->flush();
  }
}

void Fleet::on_frame(std::size_t node, const net::Frame& frame) {
  Agent& agent = agents_[node];
  if (agent.lost) return;
  auto message = message::decode(frame);
  if (!message) {
    agent.lost = true;
    return handlers_.on_lost(node, "the agent on " + agent.name + " sent " + message.error().message());
  }
  if (auto* facts = std::get_if<message::Facts>(&*message)) {
    if (facts->facts.version != contract::kVersion) {
      agent.lost = true;
      return handlers_.on_lost(node, "ddlrun on " + agent.name + " is version " + facts->facts.version +
                                         ", this one is " + contract::kVersion +
                                         "; install the same one there");
    }
    facts_[node] = std::move(facts->facts);
    if (!std::exchange(agent.has_facts, true) && --missing_facts_ == 0) handlers_.on_ready();
    return;
  }
  if (std::holds_alternative<message::Finished>(*message)) agent.finished = true;
  handlers_.on_message(node, std::move(*message));
}

void Fleet::on_closed(std::size_t node, const std::string& reason) {
  Agent& agent = agents_[node];
  if (agent.lost || agent.finished) return;
  agent.lost = true;
  const std::string how = agent.process->how_it_ended();
  handlers_.on_lost(node, how + " on " + agent.name + " (its link: " + reason + ")");
}

void Fleet::shut_down(Deadline deadline) {
  for (Agent& agent : agents_) agent.link.reset();
  for (Agent& agent : agents_) agent.process->clean_up(deadline);
}

}  // namespace ddl::launcher
