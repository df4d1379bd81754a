// How agents that srun has started reach each other: the first one listens, and the others connect to it over
// TLS with a key of the job. A thread carries bytes between each TLS connection and a local socket.
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

/// A link is a descriptor, whatever lies between its ends: the owner of the local end need not know of TLS.
/// Where one side of a pair closes, so does the other, after the bytes that were on their way. Costs nothing
/// while no bytes arrive.
class TlsPump {
 public:
  TlsPump();
  /// Finishes connections whose local end has been closed already, and cuts the others.
  ~TlsPump();
  TlsPump(const TlsPump&) = delete;
  TlsPump& operator=(const TlsPump&) = delete;

  /// On the side that has connected: carries bytes between the other end of far_end and the peer. If the
  /// handshake fails or is not done in time, on_refused is called, on the pump's thread, and far_end closes.
  void carry(net::TlsStream stream, UniqueFd far_end, std::function<void()> on_refused);

  /// The local end for a peer that has proved its identity; empty: the peer is refused.
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

/// For agents that another process starts and that connect by themselves: "starting" one is to expect it.
/// Each proves that it knows the key under its node's name, and connects once. All are expected before the
/// first connects; when the last has connected, the listener closes.
class RendezvousStarter : public NodeStarter {
 public:
  /// Listens on all addresses of this host, on a free port. nonce: of the agents' greeting.
  static Result<std::unique_ptr<RendezvousStarter>> listen(net::JobKey key, std::string nonce);

  std::uint16_t port() const { return port_; }
  bool forks() const override { return false; }
  Result<StartedAgent> start(const AllocatedNode& node) override;

 private:
  RendezvousStarter(net::JobKey key, std::string nonce) : key_(std::move(key)), nonce_(std::move(nonce)) {}
  std::optional<net::PresharedKey> key_of(std::string_view identity);
  UniqueFd end_of(const std::string& identity);

  const net::JobKey key_;
  const std::string nonce_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;                                       // the pump's thread asks, too
  std::map<std::string, UniqueFd, std::less<>> expected_;  // by name: our end, which waits for the peer's
  TlsPump pump_;
};

/// Reads the Join message that a joining agent gets on its standard input. Blocks until then. Error: the
/// input ended before, or is something else.
Result<message::Join> read_join(int fd);

/// Connects to the first of the addresses that answers. Blocks, for as long as patience at most. Error: none
/// does, with the error of the last one.
Result<UniqueFd> connect_to_rendezvous(const message::Join& join, std::chrono::milliseconds patience);

}  // namespace ddl::launcher
