// Carries bytes between local sockets and TLS connections, on a thread of its own.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/fd.h"
#include "launcher/loop/event_loop.h"
#include "net/tls_stream.h"

namespace ddl::launcher {

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

}  // namespace ddl::launcher
