// Agents that were started by somebody else and come here by themselves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "launcher/fleet/gather/tls_pump.h"
#include "launcher/fleet/node_starter.h"
#include "net/job_key.h"

namespace ddl::launcher {

/// "Starting" an agent is to expect it. Each proves that it knows the key under its node's name, and comes once. All are
/// expected before the first comes; when the last has come, nobody can connect any more.
class GatherStarter : public NodeStarter {
 public:
  /// Listens on all addresses of this host, on a free port. nonce: of the agents' greeting.
  static Result<std::unique_ptr<GatherStarter>> listen(net::JobKey key, std::string nonce);

  std::uint16_t port() const { return port_; }
  bool forks() const override { return false; }
  Result<StartedAgent> start(const AllocatedNode& node) override;

 private:
  GatherStarter(net::JobKey key, std::string nonce) : key_(std::move(key)), nonce_(std::move(nonce)) {}
  std::optional<net::PresharedKey> key_of(std::string_view identity);
  UniqueFd end_of(const std::string& identity);

  const net::JobKey key_;
  const std::string nonce_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;                                       // the pump's thread asks, too
  std::map<std::string, UniqueFd, std::less<>> expected_;  // by name: our end, which waits for the peer's
  TlsPump pump_;
};

}  // namespace ddl::launcher
