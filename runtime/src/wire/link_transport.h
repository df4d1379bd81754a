// The interface through which ranks of different hosts are connected, and the factory of both transports of a process
// set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/common/fault.h"
#include "runtime/src/common/member.h"
#include "runtime/src/common/wait_limits.h"
#include "runtime/src/shm/transport.h"

namespace ddl::runtime {

/// Byte streams to one rank of another host, authenticated. Non-blocking.
struct PeerLink {
  int host = 0;  ///< as LinkPartner names it
  Member peer;
  /// For abort and farewell: read by a sleeping thread, so that neither is delayed by data.
  UniqueFd control;
  /// For the data of collectives: read and written by the rank that is inside a call. At least one, in the same order
  /// on both sides.
  std::vector<UniqueFd> data;
  /// The address taken and the reason, for people: "192.0.2.7:4711 from eth0, in the same network".
  std::string how;
};

/// A rank to connect with.
struct LinkPartner {
  int host = 0;  ///< an index of HostLayout::hosts
  int rank = 0;
  /// True: this rank connects and the partner accepts. False: the reverse.
  bool connects = false;
};

/// The purpose of a link, which must be the same on both sides.
enum class LinkUse : std::uint32_t {
  kLane = 0,       ///< for the collectives of the process set
  kPair = 1,       ///< for transfers between two of its ranks
  kDuplicate = 2,  ///< for calls of named tensors
  kMessages = 3,   ///< for messages from one rank of the job to another
};

/// The purpose of links, and the time limit for connecting.
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
  /// Puts into the bootstrap what partners need to find this rank. A fence of all ranks follows, also after an error.
  virtual Status publish(Bootstrap& bootstrap) = 0;
  /// After that fence, and again for further partners: connects this rank with partners, which call this too.
  /// kTimeout when the deadline has passed; kNotFound when a partner has left, which is not detected for lanes,
  /// because all lanes of a set connect at the same time.
  virtual Result<std::vector<PeerLink>> connect(Bootstrap& bootstrap,
                                                const std::vector<LinkPartner>& partners,
                                                const LinkTerms& terms) = 0;
  /// After a connect() that has failed: the links whose control connection it had established, which may lack data
  /// connections. A partner that has completed its side takes the end of the connection for a death, unless it gets an
  /// abort or a farewell over it first.
  virtual std::vector<PeerLink> take_established() = 0;
  /// After a connect() that has failed with kNotFound: the partner that has left.
  virtual std::optional<int> gone() const = 0;
  /// The host and pid of a rank, for messages about one that is not connected.
  virtual Member who_is(Bootstrap& bootstrap, int rank) const = 0;
  /// The descriptors that it keeps open between calls of connect(), which a forked child must close.
  virtual std::vector<int> fds() const = 0;
};

/// Makes the transports of a process set; each set has its own. fault outlives them.
struct TransportMaker {
  std::function<std::unique_ptr<Transport>(const Membership&, FaultInjector& fault)> within_host;
  std::function<std::unique_ptr<LinkTransport>(const Membership&, FaultInjector& fault)> between_hosts;
};

}  // namespace ddl::runtime
