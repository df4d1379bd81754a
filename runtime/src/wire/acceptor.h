// Accepts connections from ranks of other hosts: the listeners, and the callers that have not authenticated yet.
//
// An unauthenticated peer occupies a descriptor for a limited time: callers have kPatience to prove that they know
// the job's key, and when there are more than the limit, the one that has waited longest is rejected. A rank needs
// two round trips, and connects again if it is rejected, so a flood delays it but cannot keep it out. When the
// process has no descriptor left, half of the callers are rejected and the limit is lowered accordingly, because the
// program needs the descriptors.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/handshake.h"

namespace ddl::runtime {

/// accept(2) or socket(2) had no descriptor or no memory for another connection.
bool is_shortage(int error);

class Acceptor {
 public:
  static constexpr std::size_t kMaxCallers = 64;
  static constexpr std::chrono::seconds kPatience{10};

  /// Listens on a free port of each address. Only tests pass another patience than kPatience.
  static Result<Acceptor> open(const std::vector<net::InterfaceAddress>& addresses,
                               std::chrono::milliseconds patience = kPatience);

  const std::vector<net::SocketAddress>& addresses() const { return addresses_; }
  /// The listeners' descriptors.
  std::vector<int> fds() const;

  /// The descriptors and events that poll() is to wait for, and until when.
  void append_entries(std::vector<pollfd>& entries) const;
  Deadline next_deadline() const;
  /// Answers callers as far as possible without waiting. Returns the callers that have authenticated and ask to be
  /// accepted, and those that were kept.
  Result<std::vector<net::HandshakeSocket>> advance(const net::JobKey& key, const net::Introduction& own);

  /// Keeps a caller that is not expected yet, until its deadline.
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
  std::deque<net::HandshakeSocket> callers_;  ///< in order of arrival
  std::size_t max_callers_ = kMaxCallers;
  std::deque<net::HandshakeSocket> early_;  ///< authenticated, and not expected yet
  std::chrono::milliseconds patience_{};
  int refused_ = 0;
  std::string last_refusal_;
};

}  // namespace ddl::runtime
