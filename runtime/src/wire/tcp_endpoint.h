// How a rank is reached over TCP: the endpoint that it publishes through the bootstrap, and the hello with which it
// introduces itself on a connection.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/address.h"
#include "net/handshake.h"
#include "runtime/src/common/member.h"
#include "runtime/src/wire/link_transport.h"

namespace ddl::runtime {

// The addresses by which a rank can be reached from other hosts, as text that is published through the bootstrap.

struct TcpEndpoint {
  /// The rank's process.
  std::string host;
  int pid = 0;
  std::vector<net::SocketAddress> addresses;
  /// The reason if there are none: a rank that cannot listen publishes it for the ranks that would connect.
  std::string failure;

  std::string to_text() const;
  static Result<TcpEndpoint> parse(std::string_view text);
};

// How a rank introduces itself in the handshake of a link.

/// What a connection is for.
enum class LinkPurpose : std::uint32_t {
  kControl = 1,
  kData = 2,
  kProbe = 3,  ///< no data: when it ends, the rank that it leads to has left
};

/// Plain data between machines of one byte order, which is checked, and one version of libddl.
struct LinkHello {
  std::uint32_t version = kVersion;
  std::uint32_t byte_order = kByteOrder;
  std::uint32_t generation = 0;
  LinkPurpose purpose = LinkPurpose::kControl;
  std::int32_t rank = 0;     ///< the sender
  std::int32_t to_rank = 0;  ///< the receiver; -1 from an acceptor that does not know yet which rank connects
  std::int32_t size = 0;     ///< ranks of the job
  std::int32_t pid = 0;
  /// A rank that connects to several addresses at once may be accepted on more than one. So it numbers its control
  /// connections, and its data connections name the one that it has taken.
  std::uint32_t attempt = 0;
  LinkUse use = LinkUse::kLane;
  /// A data connection's number, and the number of data connections that the sender wants with each partner.
  std::uint16_t socket = 0;
  std::uint16_t sockets = 1;
  std::uint32_t reserved = 0;
  std::uint64_t agreed = 0;
  HostField host;

  static constexpr std::uint32_t kVersion = 4;
  static constexpr std::uint32_t kByteOrder = 0x01020304;

  Member member() const { return {rank, host.str(), pid}; }
  net::Introduction to_introduction() const;
  /// An error if the other side has another version or another byte order.
  static Result<LinkHello> parse(const net::Introduction& introduction);
};

}  // namespace ddl::runtime
