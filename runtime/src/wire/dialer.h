// Connects to one rank of another host until it answers on one of its addresses.
//
// The addresses are tried in order: first those in a network of this host, then as the rank offers them. Each gets a
// head start before the next is tried concurrently (as in RFC 8305), so an address that drops packets costs little.
// The first address on which the rank authenticates is taken, for control and then for data, one connection after the
// other. If all have failed, the round begins again after a pause: the rank may have rejected us during a flood of
// other connections.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/handshake.h"
#include "runtime/src/wire/tcp_endpoint.h"

namespace ddl::runtime {

/// The connections to a rank.
struct DialedLink {
  LinkHello peer;
  UniqueFd control;
  std::vector<UniqueFd> data;
  std::string how;
};

class Dialer {
 public:
  static constexpr std::chrono::milliseconds kHeadStart{250};
  static constexpr std::chrono::seconds kAttempt{10};

  /// peer_addresses: the addresses on which the rank listens. own_hello names the rank in to_rank. key and
  /// own_addresses outlive this.
  Dialer(const net::JobKey& key, const LinkHello& own_hello,
         const std::vector<net::SocketAddress>& peer_addresses,
         const std::vector<net::InterfaceAddress>& own_addresses);

  int to_rank() const { return hello_.to_rank; }
  void append_entries(std::vector<pollfd>& entries) const;
  Deadline next_deadline() const;
  /// Progresses as far as possible without waiting. An error is permanent: another attempt would fail too.
  Status advance();
  /// Without data connections, the control connection is all.
  /// A partner that wants a different number of data connections gets one; LinkSetup::check() reports the difference.
  bool is_done() const {
    return link_.data.size() >= (link_.peer.sockets == hello_.sockets ? hello_.sockets : 1u);
  }
  /// The rank does not listen any more: it has left, or its process has ended.
  bool is_gone() const { return is_gone_; }
  DialedLink take() { return std::move(link_); }
  /// Why it is not done: "192.0.2.7:4711: connect: Connection refused; [2001:db8::7]:4712: not answered yet".
  std::string failures() const;

 private:
  struct Candidate {
    net::SocketAddress address;
    bool in_own_network = false;
    std::uint32_t number = 0;  ///< LinkHello::attempt
    std::optional<net::HandshakeSocket> attempt;
    std::string failure;
    int error = 0;  ///< errno of the failure; 0 if it is another
  };

  void start_next();
  /// After all candidates have failed: whether their errors show that the rank does not listen.
  bool nobody_listens() const;
  /// Goes on with a connection to this address, and no other.
  void go_on_at(const net::SocketAddress& address);
  Status take_connection(Candidate& candidate);
  std::string describe(const Candidate& winner) const;

  const net::JobKey& key_;
  LinkHello hello_;
  const std::vector<net::InterfaceAddress>& own_addresses_;
  std::vector<Candidate> candidates_;
  std::size_t next_ = 0;  ///< of candidates_
  Deadline start_next_at_ = Deadline::after(Deadline::Clock::duration::zero());
  std::chrono::milliseconds pause_{50};
  bool is_gone_ = false;
  DialedLink link_;
};

}  // namespace ddl::runtime
