// Ranks of different hosts over TCP.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "net/interface.h"
#include "net/job_key.h"
#include "runtime/src/fault.h"
#include "runtime/src/transport/link_transport.h"
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

/// Every rank listens on its usable addresses; of two partners the one whose host comes later in the layout calls the
/// other. Listeners stay open, for further connections, as long as the transport lives. Both prove that they know the job's key before anything else is said. What follows is not encrypted.
class TcpTransport final : public LinkTransport {
 public:
  /// fault outlives the transport.
  TcpTransport(TcpSettings settings, FaultInjector& fault) : settings_(std::move(settings)), fault_(fault) {}

  const char* name() const override { return "tcp"; }
  Status offer(Bootstrap& bootstrap) override;
  Result<std::vector<PeerLink>> connect(Bootstrap& bootstrap, const std::vector<int>& hosts,
                                        std::uint64_t agreed) override;

 private:
  /// What this rank has before it meets the others.
  struct Offer {
    std::vector<net::InterfaceAddress> addresses;
    CallerGate gate;
    std::optional<net::JobKey> key;
  };
  Result<Offer> prepare(Bootstrap& bootstrap) const;

  TcpSettings settings_;
  FaultInjector& fault_;
  std::optional<Result<Offer>> offer_;
};

}  // namespace ddl::runtime
