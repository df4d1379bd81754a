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

/// Copies bytes between local sockets and TLS connections, on a thread of its own. The owner of a local socket uses
/// it as any other link, without knowledge of TLS. If one side of a pair closes, the other is closed after the
/// bytes in transit were delivered. Uses no CPU time while no bytes arrive.
class TlsPump {
 public:
  TlsPump();
  /// Delivers the last bytes of connections whose local end has been closed already, and closes the others.
  ~TlsPump();
  TlsPump(const TlsPump&) = delete;
  TlsPump& operator=(const TlsPump&) = delete;

  /// For the side that has connected: copies bytes between far_end, one socket of a pair, and the peer. If the
  /// handshake fails or is not complete in time, on_refused is called on the pump's thread, and far_end is closed.
  void carry(net::TlsStream stream, UniqueFd far_end, std::function<void()> on_refused);

  /// Returns the local end for a peer that has authenticated itself; empty: the peer is refused.
  using FindLocalEnd = std::function<UniqueFd(const std::string& identity)>;
  /// Accepts connections on the listener from now on. Both functions are called on the pump's thread.
  void accept(UniqueFd listener, net::TlsStream::FindKey find_key, FindLocalEnd find_local_end);
  /// Closes the listener, and every connection that has not authenticated itself.
  void stop_accepting();

 private:
  class Connection;
  Connection* open(net::TlsStream stream, FindLocalEnd find_local_end, std::function<void()> on_refused);
  void on_connection();
  /// If at least min_count connections are unauthenticated, closes the one that has waited longest, and returns true.
  bool reject_oldest(std::size_t min_count);

  EventLoop loop_;
  std::map<Connection*, std::unique_ptr<Connection>> connections_;
  std::deque<Connection*>
      unauthenticated_;  ///< in the order of their arrival; some may have authenticated themselves since
  UniqueFd listener_;
  EventLoop::FdWatch listener_watch_;
  EventLoop::Timer accept_again_;
  net::TlsStream::FindKey find_key_;
  FindLocalEnd find_local_end_;
  bool is_ending_ = false;
  EventLoop::Timer flush_timer_;
  std::thread thread_;
};

/// For agents that another process starts and that connect by themselves: start() makes the listener expect one.
/// Each agent proves that it knows the key derived for its node's name, and connects once. start() must be called
/// for all of them before the first connects; when the last has connected, the listener closes.
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
  UniqueFd local_end_of(const std::string& identity);

  const net::JobKey key_;
  const std::string nonce_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;                                       // the pump's thread reads expected_, too
  std::map<std::string, UniqueFd, std::less<>> expected_;  // by node's name: the local end for its agent
  TlsPump pump_;
};

/// Reads the Join message that a joining agent gets on its standard input. Blocks until it has come. Error: the
/// input ended before, or is not a Join.
Result<message::Join> read_join(int fd);

/// Tries the addresses in their order and returns the first connection. Blocks for at most patience. Error: no
/// address answers; the error is that of the last one.
Result<UniqueFd> connect_to_rendezvous(const message::Join& join, std::chrono::milliseconds patience);

}  // namespace ddl::launcher
