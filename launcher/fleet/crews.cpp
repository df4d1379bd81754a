#include "launcher/fleet/crews.h"

#include <numeric>

#include "launcher/fleet/greeting.h"

namespace ddl::launcher {

Result<std::unique_ptr<Crews>> Crews::make(EventLoop& loop, CrewStarter& starter) {
  auto key = net::JobKey::random();
  if (!key) return fail(std::move(key.error()));
  auto nonce = make_nonce();
  if (!nonce) return fail(std::move(nonce.error()));
  return std::unique_ptr<Crews>(new Crews(loop, starter, *std::move(key), *std::move(nonce)));
}

void Crews::start(const std::vector<AllocatedNode>& nodes, const OnFailed& on_failed) {
  auto started = starter_.start(nodes, nonce_);
  if (!started) {
    std::vector<std::size_t> all(nodes.size());
    std::iota(all.begin(), all.end(), 0);
    loop_.post([all, on_failed, why = StartFailure{started.error().message()}] { on_failed(all, why); });
    return;
  }
  for (StartedCrew& crew : *started) {
    auto on_over = [on_failed, positions = crew.nodes](const StartFailure& why) {
      on_failed(positions, why);
    };
    crews_.push_back(std::make_unique<Crew>(loop_, std::move(crew), std::move(on_over)));
  }
}

void Crews::tell_gatherer(message::StartAgents& branch) const {
  branch.key = key_.to_hex();
  branch.nonce = nonce_;
}

void Crews::join(const message::Gathering& gathering, const NodeFacts& gatherer) {
  message::Join join{{}, gathering.port, key_.to_hex()};
  // What its name means here is what the others most likely reach.
  if (!gatherer.master_address.empty()) join.addresses.push_back(gatherer.master_address);
  for (const NodeAddress& address : gatherer.addresses) {
    if (address.address != gatherer.master_address) join.addresses.push_back(address.address);
  }
  for (auto& crew : crews_) crew->tell(join);
}

std::string Crews::said_by(const std::string& node) const {
  for (const auto& crew : crews_) {
    if (std::string said = crew->said_by(node); !said.empty()) return said;
  }
  return "";
}

void Crews::shut_down(Deadline deadline) {
  for (auto& crew : crews_) crew->close();
  for (auto& crew : crews_) crew->clean_up(deadline);
}

}  // namespace ddl::launcher
