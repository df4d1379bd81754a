// Ranks of different hosts over TCP.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/address.h"
#include "net/job_key.h"
#include "runtime/src/fault.h"
#include "runtime/src/transport/link_transport.h"
#include "runtime/src/transport/tcp/business_card.h"
#include "runtime/src/transport/tcp/caller_gate.h"

namespace ddl::runtime {

struct TcpSettings {
  /// Names of the interfaces whose addresses are offered; empty: all but loopback.
  std::vector<std::string> interfaces;
  /// Inherited descriptor of the job's key. Without it rank 0 makes a key and sends it through the bootstrap, where other
  /// users of a host may be able to read it: that still keeps strangers on the network out.
  std::optional<int> job_key_fd;
  /// Data connections to each partner, from 1 to kMostSocketsPerPeer; the same on all ranks.
  int sockets = 1;
  /// How long connecting may take once all ranks have begun.
  double seconds = 60.0;
  /// How long a caller may take to prove itself; another than the default in tests only.
  std::chrono::milliseconds patience = CallerGate::kPatience;
};

/// Every rank listens on its usable addresses, and goes on doing so, for further connections, as long as the transport
/// lives. Both sides prove that they know the job's key before anything else is said. What follows is not encrypted.
///
/// A pair connects whenever both want to, so one may wait long for the other. It would not notice that the other one has
/// left, so it knocks at its door: a connection that nobody answers before they meet, but that ends when the listener does.
class TcpTransport final : public LinkTransport {
 public:
  /// fault outlives the transport.
  TcpTransport(TcpSettings settings, FaultInjector& fault) : settings_(std::move(settings)), fault_(fault) {}

  const char* name() const override { return "tcp"; }
  Status offer(Bootstrap& bootstrap) override;
  Result<std::vector<PeerLink>> connect(Bootstrap& bootstrap, const std::vector<LinkPartner>& partners,
                                        const LinkTerms& terms) override;
  std::vector<PeerLink> take_standing() override { return std::exchange(standing_, {}); }
  Member who_is(Bootstrap& bootstrap, int rank) const override;
  std::vector<int> fds() const override;

 private:
  /// What this rank has before it meets the others.
  struct Offer {
    std::vector<net::InterfaceAddress> addresses;
    CallerGate gate;
    std::optional<net::JobKey> key;
  };
  Result<Offer> prepare(Bootstrap& bootstrap) const;
  Status fetch_key(Bootstrap& bootstrap, Deadline deadline);
  static Result<BusinessCard> card_of(Bootstrap& bootstrap, int rank, Deadline deadline);

  TcpSettings settings_;
  FaultInjector& fault_;
  std::optional<Result<Offer>> offer_;
  std::vector<PeerLink> standing_;  ///< when connect() has failed
};

}  // namespace ddl::runtime
