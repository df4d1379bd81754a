// The seam through which ranks of different hosts are connected, and the factory of both transports of a process set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/common/fault.h"
#include "runtime/src/common/member.h"
#include "runtime/src/common/wait_limits.h"
#include "runtime/src/shm/transport.h"

namespace ddl::runtime {

// The seam through which ranks of different hosts are connected.

/// Byte streams to one rank of another host, authenticated. Non-blocking.
struct PeerLink {
  int host = 0;  ///< as LinkPartner names it
  Member peer;
  /// For abort and farewell: read by a sleeping thread, so that neither waits behind data.
  UniqueFd control;
  /// For what collectives send: read and written by the rank that is inside a call. At least one, in the same order on both
  /// sides.
  std::vector<UniqueFd> data;
  /// Which way was taken and why, for a person: "192.0.2.7:4711 from eth0, in the same network".
  std::string how;
};

/// Whom to connect with.
struct LinkPartner {
  int host = 0;  ///< an index of HostLayout::hosts
  int rank = 0;
  /// This rank calls, and the partner waits; or the other way round.
  bool calls = false;
};

/// What connecting is for, which both sides must mean alike.
enum class LinkUse : std::uint32_t {
  kLane = 0,  ///< for the collectives of the process set
  kPair = 1,  ///< for what two of its ranks send to each other
};

/// What partners connect for, and how long they may take.
struct LinkTerms {
  LinkUse use = LinkUse::kLane;
  /// A number that must be the same on both sides: the bytes of a chunk.
  std::uint64_t agreed = 0;
  /// kClosed when the doorbell rings. Lanes take no longer than the transport allows, since all ranks have begun.
  ConnectLimit limit;
};

class LinkTransport {
 public:
  LinkTransport() = default;
  virtual ~LinkTransport() = default;
  LinkTransport(const LinkTransport&) = delete;
  LinkTransport& operator=(const LinkTransport&) = delete;

  virtual const char* name() const = 0;  ///< static storage
  /// Puts into the bootstrap what partners need to find this rank. A fence of all ranks follows, whatever comes out here.
  virtual Status offer(Bootstrap& bootstrap) = 0;
  /// After that fence, and again for further ones: connects this rank with partners, which call this too. kTimeout when
  /// the deadline has passed; kNotFound when a partner has left, which is looked for among pairs only: all lanes of a set
  /// connect together.
  virtual Result<std::vector<PeerLink>> connect(Bootstrap& bootstrap,
                                                const std::vector<LinkPartner>& partners,
                                                const LinkTerms& terms) = 0;
  /// After a connect() that has failed: what it had connected. Its partners take the end of a connection for a death,
  /// unless they are told otherwise over it.
  virtual std::vector<PeerLink> take_established() = 0;
  /// Who a rank is, for sentences about one that is not connected.
  virtual Member who_is(Bootstrap& bootstrap, int rank) const = 0;
  /// What it keeps open between calls of connect(), for a forked child to close.
  virtual std::vector<int> fds() const = 0;
};

// How the transports of a process set come about: each set has its own.

/// fault outlives what is made.
struct TransportMaker {
  std::function<std::unique_ptr<Transport>(const Membership&, FaultInjector& fault)> within_host;
  std::function<std::unique_ptr<LinkTransport>(const Membership&, FaultInjector& fault)> between_hosts;
};

}  // namespace ddl::runtime
