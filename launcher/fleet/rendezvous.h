// How agents that srun has started reach each other: the first one listens, and the others connect to it over TLS with a
// key of the job. A thread carries bytes between each TLS connection and a local socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/fd.h"
#include "launcher/fleet/node_starter.h"
#include "launcher/loop/event_loop.h"
#include "launcher/protocol/messages.h"
#include "net/job_key.h"
#include "net/tls_stream.h"

namespace ddl::launcher {

// Carries bytes between local sockets and TLS connections, on a thread of its own.

/// A link is a descriptor, whatever lies between its ends: whoever holds the local end need not know of TLS. Where one side of
/// a pair closes, so does the other, after what was on its way. Costs nothing while nothing is said.
class TlsPump {
 public:
  TlsPump();
  /// Lets go of connections whose local end has been closed already, and cuts the others.
  ~TlsPump();
  TlsPump(const TlsPump&) = delete;
  TlsPump& operator=(const TlsPump&) = delete;

  /// From the side that has connected: what the other end of far_end says goes to the peer, and back. If the handshake fails or
  /// is not done in time, on_refused is called, on the pump's thread, and far_end closes.
  void carry(net::TlsStream stream, UniqueFd far_end, std::function<void()> on_refused);

  /// The end to which a peer's bytes go that has proved to be who it says; empty: it is one too many.
  using FindEnd = std::function<UniqueFd(const std::string& identity)>;
  /// Takes connections on the listener from now on. Both functions are called on the pump's thread.
  void accept(UniqueFd listener, net::TlsStream::FindKey find_key, FindEnd find_end);
  /// Closes the listener, and every connection that has not proved who it is.
  void stop_accepting();

 private:
  class Connection;
  Connection* open(net::TlsStream stream, FindEnd find_end, std::function<void()> on_refused);
  void on_connection();
  /// Turns away the unproved connection that has waited longest if there are so many. False: there are not.
  bool turn_away_oldest(std::size_t most);

  EventLoop loop_;
  std::map<Connection*, std::unique_ptr<Connection>> connections_;
  std::deque<Connection*>
      unproved_;  ///< the one that has waited longest first; some have proved themselves since
  UniqueFd listener_;
  EventLoop::FdWatch listener_watch_;
  EventLoop::Timer accept_again_;
  net::TlsStream::FindKey find_key_;
  FindEnd find_end_;
  bool is_ending_ = false;
  EventLoop::Timer last_words_;
  std::thread thread_;
};

// Agents that were started by somebody else and come here by themselves.

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

// An agent's way to the one that it is reached through.

/// Where and how to join, from a descriptor that ends behind it. Blocks until then. Error: it ended before, or is something else.
Result<message::Join> read_join(int fd);

/// Connects to the first of the addresses that answers. Blocks, for as long as patience at most. Error: none does, with what the
/// last one said.
Result<UniqueFd> connect_to_gatherer(const message::Join& join, std::chrono::milliseconds patience);

}  // namespace ddl::launcher
