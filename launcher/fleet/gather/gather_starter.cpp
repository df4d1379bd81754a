#include "launcher/fleet/gather/gather_starter.h"

#include <sys/socket.h>

#include "net/tcp.h"

namespace ddl::launcher {

namespace {

constexpr int kBacklog = 1024;

/// All that is seen of it is its connection: who started it knows more.
class GatheredProcess : public AgentProcess {
 public:
  std::string how_it_ended() override {
    return "its connection closed: its step, its node or its agent has ended";
  }
  StartFailure why_not_started(std::string_view, std::string_view) override {
    return {"it came and went before it said anything"};
  }
  void clean_up(Deadline) override {}
};

}  // namespace

Result<std::unique_ptr<GatherStarter>> GatherStarter::listen(net::JobKey key, std::string nonce) {
  auto listener = net::listen_tcp_everywhere(kBacklog);
  if (!listener) return fail(std::move(listener.error()));
  const auto address = net::local_address(listener->get());
  if (!address) return fail(address.error());
  std::unique_ptr<GatherStarter> starter(new GatherStarter(std::move(key), std::move(nonce)));
  starter->port_ = address->port();
  starter->pump_.accept(
      std::move(*listener),
      [self = starter.get()](std::string_view identity) { return self->key_of(identity); },
      [self = starter.get()](const std::string& identity) { return self->end_of(identity); });
  return starter;
}

Result<StartedAgent> GatherStarter::start(const AllocatedNode& node) {
  auto pair = make_socket_pair(SOCK_STREAM);
  if (!pair) return fail(pair.error());
  {
    const std::lock_guard lock(mutex_);
    expected_[node.name] = std::move(pair->second);
  }
  return StartedAgent{std::move(pair->first), {}, {}, nonce_, std::make_unique<GatheredProcess>()};
}

std::optional<net::PresharedKey> GatherStarter::key_of(std::string_view identity) {
  const std::lock_guard lock(mutex_);
  if (!expected_.contains(identity)) return std::nullopt;
  return net::preshared_key(key_, identity);
}

UniqueFd GatherStarter::end_of(const std::string& identity) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(identity);
  if (found == expected_.end()) return {};
  UniqueFd end = std::move(found->second);
  expected_.erase(found);
  // Nobody else is to come: what does not listen cannot be attacked.
  if (expected_.empty()) pump_.stop_accepting();
  return end;
}

}  // namespace ddl::launcher
