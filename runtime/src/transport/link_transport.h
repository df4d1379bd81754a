// The seam through which ranks of different hosts are connected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/transport/member.h"

namespace ddl::runtime {

/// A partner's processor, and ours, gain nothing from more; each is a descriptor on both sides.
inline constexpr int kMostSocketsPerPeer = 8;

/// Byte streams to one rank of another host, authenticated. Non-blocking.
struct PeerLink {
  int host = 0;  ///< an index of HostLayout::hosts
  Member peer;
  /// For abort and farewell: read by a sleeping thread, so that neither waits behind data.
  UniqueFd control;
  /// For what collectives send: read and written by the rank that is inside a call. At least one, in the same order on both
  /// sides.
  std::vector<UniqueFd> data;
  /// Which way was taken and why, for a person: "192.0.2.7:4711 from eth0, in the same network".
  std::string how;
};

class LinkTransport {
 public:
  LinkTransport() = default;
  virtual ~LinkTransport() = default;
  LinkTransport(const LinkTransport&) = delete;
  LinkTransport& operator=(const LinkTransport&) = delete;

  virtual const char* name() const = 0;  ///< static storage
  /// Puts into the bootstrap what the partners need to find this rank; for ranks whose local rank is below the layout's
  /// lanes(). A fence of all ranks follows, whatever comes out here.
  virtual Status offer(Bootstrap& bootstrap) = 0;
  /// After that fence, and again for further hosts: connects this rank with the rank of the same local rank on each of the hosts, which call this too.
  /// agreed: a number that must be the same everywhere, here the bytes of a chunk; a partner with another is an error.
  virtual Result<std::vector<PeerLink>> connect(Bootstrap& bootstrap, const std::vector<int>& hosts,
                                                std::uint64_t agreed) = 0;
};

}  // namespace ddl::runtime
