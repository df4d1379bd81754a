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

// Where a rank can be reached from other hosts, as text that travels through the bootstrap.

struct TcpEndpoint {
  /// The rank's process.
  std::string host;
  int pid = 0;
  std::vector<net::SocketAddress> addresses;
  /// Why there are none: a rank that cannot listen says so to those that would call it.
  std::string failure;

  std::string to_text() const;
  static Result<TcpEndpoint> parse(std::string_view text);
};

// How a rank introduces itself in the handshake of a link.

/// What a connection is for.
enum class LinkPurpose : std::uint32_t {
  kControl = 1,
  kData = 2,
  kProbe = 3,  ///< nothing: its end tells the caller that the other one has left
};

/// Plain data between machines of one byte order, which is checked, and one version of libddl.
struct LinkHello {
  std::uint32_t version = kVersion;
  std::uint32_t byte_order = kByteOrder;
  std::uint32_t generation = 0;
  LinkPurpose purpose = LinkPurpose::kControl;
  std::int32_t rank = 0;     ///< who speaks
  std::int32_t to_rank = 0;  ///< and to whom; -1 from an acceptor that does not know its caller yet
  std::int32_t size = 0;     ///< ranks of the job
  std::int32_t pid = 0;
  /// A rank that calls on several addresses at once may be welcomed on more than one: control connections are numbered by
  /// the caller, and its data connection names the one that it has taken.
  std::uint32_t call = 0;
  LinkUse use = LinkUse::kLane;
  /// A data connection's number, and how many the speaker wants to each partner; each names the control connection.
  std::uint16_t socket = 0;
  std::uint16_t sockets = 1;
  std::uint32_t reserved = 0;
  std::uint64_t agreed = 0;
  HostField host;

  static constexpr std::uint32_t kVersion = 3;
  static constexpr std::uint32_t kByteOrder = 0x01020304;

  Member member() const { return {rank, host.str(), pid}; }
  net::Introduction to_introduction() const;
  /// An error if the other side speaks another version or has another byte order.
  static Result<LinkHello> parse(const net::Introduction& introduction);
};

}  // namespace ddl::runtime
