// The TCP transport: every rank offers an endpoint, then dials some ranks of other hosts and accepts the others until
// it has a link to each.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/address.h"
#include "net/job_key.h"
#include "runtime/src/common/fault.h"
#include "runtime/src/wire/acceptor.h"
#include "runtime/src/wire/dialer.h"
#include "runtime/src/wire/link_transport.h"
#include "runtime/src/wire/shared_key.h"
#include "runtime/src/wire/tcp_endpoint.h"

namespace ddl::runtime {

// Connects to some ranks of other hosts and accepts connections from others, until there is a link to each.

/// Used once, by one thread.
class LinkSetup {
 public:
  /// hello: how this rank introduces itself. Everything but hello outlives this.
  LinkSetup(const net::JobKey& key, const LinkHello& hello, Acceptor& acceptor,
            const std::vector<net::InterfaceAddress>& own_addresses)
      : key_(key), hello_(hello), acceptor_(acceptor), own_addresses_(own_addresses) {}

  /// Waits for a connection from this rank.
  void expect(int host, int rank);
  /// The same, and probes the rank's addresses meanwhile, which shows when it has left.
  void expect(int host, int rank, const std::vector<net::SocketAddress>& addresses);
  /// Connects to this rank on one of these addresses.
  void dial(int host, int rank, const std::vector<net::SocketAddress>& addresses);

  /// Returns when all links are established. A caller that is not a rank of the job is rejected and has no effect; a
  /// rank of the job that is not expected yet is kept. doorbell: as in ConnectLimit.
  Result<std::vector<PeerLink>> run(Deadline deadline, int doorbell = -1);
  /// All links; after a failure those that have a control connection: the partner may have completed its side.
  std::vector<PeerLink> take_established();
  /// The rank that listens no more.
  std::optional<int> gone() const { return gone_; }

 private:
  /// A link that is being established.
  struct Pending {
    int host = 0;
    int rank = 0;
    std::optional<Dialer> dialer;  ///< empty: the other rank connects
    std::optional<Dialer> probe;
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
  /// The caller addresses this rank of this job.
  bool belongs(const LinkHello& caller) const;
  Status wait(Deadline deadline, int doorbell) const;
  Status note_gone(const Pending& link, const Dialer& dialer);
  void take_connection(Pending& link, const LinkHello& peer, UniqueFd socket) const;
  Pending* expected_of(const LinkHello& caller);
  Status check(const Pending& link) const;
  std::string missing() const;

  const net::JobKey& key_;
  LinkHello hello_;
  Acceptor& acceptor_;
  const std::vector<net::InterfaceAddress>& own_addresses_;
  std::deque<Pending> links_;
  std::optional<int> gone_;
  /// Accepted callers to which the acceptance has not been sent yet.
  std::vector<net::HandshakeSocket> welcomed_;
};

// Ranks of different hosts over TCP.

struct TcpSettings {
  /// Names of the interfaces whose addresses are published; empty: all but loopback.
  std::vector<std::string> interfaces;
  /// Inherited descriptor of the job's key. Without it rank 0 makes a key and publishes it through the bootstrap,
  /// where other users of a host may be able to read it: that still keeps out unauthenticated peers on the network.
  std::optional<int> job_key_fd;
  /// Data connections to each partner, from 1 to kMaxSocketsPerPeer; the same on all ranks.
  int sockets = 1;
  /// The time limit for connecting once all ranks have begun.
  double seconds = 60.0;
  /// The time limit for a caller's authentication; only tests change the default.
  std::chrono::milliseconds patience = Acceptor::kPatience;
};

/// Every rank listens on its usable addresses as long as the transport lives, for further connections. Both sides
/// prove that they know the job's key before any other message. The data that follow are not encrypted.
///
/// A pair connects at its first transfer, so one rank may wait long for the other, and would not notice if that one
/// leaves. So it opens a probe to the other's listener: a connection that is not answered until then, but ends with
/// the listener.
class TcpTransport final : public LinkTransport {
 public:
  /// fault outlives the transport.
  TcpTransport(TcpSettings settings, FaultInjector& fault) : settings_(std::move(settings)), fault_(fault) {}

  const char* name() const override { return "tcp"; }
  Status publish(Bootstrap& bootstrap) override;
  Result<std::vector<PeerLink>> connect(Bootstrap& bootstrap, const std::vector<LinkPartner>& partners,
                                        const LinkTerms& terms) override;
  std::vector<PeerLink> take_established() override { return std::exchange(established_, {}); }
  std::optional<int> gone() const override { return gone_; }
  Member who_is(Bootstrap& bootstrap, int rank) const override;
  std::vector<int> fds() const override;

 private:
  /// What this rank prepares before the fence.
  struct Published {
    std::vector<net::InterfaceAddress> addresses;
    Acceptor acceptor;
    SharedKey key;
  };
  Result<Published> prepare(Bootstrap& bootstrap) const;
  static Result<TcpEndpoint> endpoint_of(Bootstrap& bootstrap, int rank, Deadline deadline);

  TcpSettings settings_;
  FaultInjector& fault_;
  std::optional<Result<Published>> published_;
  std::vector<PeerLink> established_;  ///< when connect() has failed
  std::optional<int> gone_;
};

}  // namespace ddl::runtime
