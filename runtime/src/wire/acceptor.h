// Accepts ranks of other hosts: listeners, and callers who have not proved themselves yet.
//
// A stranger can cost no more than a few descriptors for a while: callers have kPatience to prove that they know the
// job's key, and when there are more than the limit the one who has waited longest is turned away. A rank needs two round
// trips, and calls again if it is turned away, so a flood delays it but cannot keep it out.
// In a process that has no descriptor left, half of the callers are turned away, and there are never as many again: the
// program needs what they hold.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/handshake.h"

namespace ddl::runtime {

class Acceptor {
 public:
  static constexpr std::size_t kMaxCallers = 64;
  static constexpr std::chrono::seconds kPatience{10};

  /// Listens on a free port of each address. patience is another than kPatience in tests only.
  static Result<Acceptor> open(const std::vector<net::InterfaceAddress>& addresses,
                               std::chrono::milliseconds patience = kPatience);

  const std::vector<net::SocketAddress>& addresses() const { return addresses_; }
  /// The listeners' descriptors.
  std::vector<int> fds() const;

  /// What poll() is to wait for, and until when.
  void append_entries(std::vector<pollfd>& entries) const;
  Deadline next_deadline() const;
  /// Answers callers as far as possible without waiting. Gives those who have proved themselves and want to be accepted,
  /// also those who were kept.
  Result<std::vector<net::HandshakeSocket>> advance(const net::JobKey& key, const net::Introduction& own);

  /// Keeps a caller that nobody expects yet, who waits as long as its patience lasts.
  void keep(net::HandshakeSocket caller);

  /// "3 callers were turned away, the last because ..."; "" if none was.
  std::string refusals() const;

 private:
  Acceptor() = default;
  Status accept_callers(const net::JobKey& key, const net::Introduction& own);
  void make_room();
  void refuse(const std::string& why);

  std::vector<net::SocketAddress> addresses_;
  std::vector<UniqueFd> listeners_;
  std::deque<net::HandshakeSocket> callers_;  ///< the one who has waited longest first
  std::size_t max_callers_ = kMaxCallers;
  std::deque<net::HandshakeSocket> early_;  ///< proved, and not expected yet
  std::chrono::milliseconds patience_{};
  int refused_ = 0;
  std::string last_refusal_;
};

}  // namespace ddl::runtime
