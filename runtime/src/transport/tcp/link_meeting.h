// Calls some ranks of other hosts and waits for the calls of others, until there is a link to each.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/src/transport/link_transport.h"
#include "runtime/src/transport/tcp/caller_gate.h"
#include "runtime/src/transport/tcp/dialer.h"
#include "runtime/src/transport/tcp/link_hello.h"

namespace ddl::runtime {

/// Used once, by one thread.
class LinkMeeting {
 public:
  /// hello: how this rank introduces itself. Everything but hello outlives this.
  LinkMeeting(const net::JobKey& key, const LinkHello& hello, CallerGate& gate,
              const std::vector<net::InterfaceAddress>& own_addresses)
      : key_(key), hello_(hello), gate_(gate), own_addresses_(own_addresses) {}

  /// This rank will call; we wait.
  void expect(int host, int rank);
  /// The same, and we knock at its addresses meanwhile, which tells when it has left.
  void expect(int host, int rank, const std::vector<net::SocketAddress>& addresses);
  /// We call this rank on one of these addresses.
  void dial(int host, int rank, const std::vector<net::SocketAddress>& addresses);

  /// Returns when all links stand. A caller that does not belong here is turned away and changes nothing; a rank of the
  /// job that comes too early is kept. doorbell: as in ConnectLimit.
  Result<std::vector<PeerLink>> run(Deadline deadline, int doorbell = -1);
  /// The links that stand, also when not all of them do.
  std::vector<PeerLink> take_standing();

 private:
  /// A link as it comes about.
  struct Pending {
    int host = 0;
    int rank = 0;
    std::optional<Dialer> dialer;  ///< empty: expected to call
    std::optional<Dialer> knock;
    std::optional<LinkHello> peer;
    std::map<std::uint32_t, UniqueFd>
        controls;  ///< expected: by LinkHello::call, until data says which one it is
    UniqueFd control;
    std::vector<UniqueFd> data;  ///< by LinkHello::socket
    std::string how;
    bool is_done = false;
  };

  Status advance();
  Status advance_callers();
  /// It means this rank of this job.
  bool belongs(const LinkHello& caller) const;
  Status wait(Deadline deadline, int doorbell) const;
  static Status gone(const Pending& link, const Dialer& dialer);
  void take_connection(Pending& link, const LinkHello& peer, UniqueFd socket) const;
  Pending* expected_of(const LinkHello& caller);
  Status check(const Pending& link) const;
  std::string missing() const;

  const net::JobKey& key_;
  LinkHello hello_;
  CallerGate& gate_;
  const std::vector<net::InterfaceAddress>& own_addresses_;
  std::deque<Pending> links_;
  /// Callers that have been welcomed but not been told yet.
  std::vector<net::HandshakeSocket> welcomed_;
};

}  // namespace ddl::runtime
