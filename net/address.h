// Addresses of TCP sockets, as values and as text, and the addresses that this host's network interfaces offer to
// others.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::net {

/// An IPv4 or IPv6 address with a port.
class SocketAddress {
 public:
  /// 0.0.0.0:0
  SocketAddress();
  /// 127.0.0.1:0
  static SocketAddress loopback();
  /// Only "192.0.2.1:80" and "[2001:db8::1]:80": no names, no zones.
  static Result<SocketAddress> parse(std::string_view text);
  /// Copies what the system gave; an error if it is neither IPv4 nor IPv6.
  static Result<SocketAddress> from(const sockaddr* address);

  int family() const { return storage_.ss_family; }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
  std::uint16_t port() const;
  SocketAddress with_port(std::uint16_t port) const;

  bool is_loopback() const;
  /// Means something on one link only, and there only together with the interface: not to be offered to others.
  bool is_link_local() const;
  /// True if both are of one family and their first prefix_bits bits are the same.
  bool shares_prefix(const SocketAddress& other, int prefix_bits) const;

  /// "192.0.2.1", "2001:db8::1".
  std::string host_text() const;
  /// As parse() takes it.
  std::string to_text() const;

 private:
  /// The address without the port, in network order; its length is 4 or 16.
  std::string_view host_bytes() const;

  sockaddr_storage storage_{};
};

struct InterfaceAddress {
  std::string interface;  ///< "eth0"
  SocketAddress address;  ///< port 0
  int prefix_bits = 0;    ///< of its network
};

/// Every IPv4 and IPv6 address of the interfaces that are up, in the system's order.
Result<std::vector<InterfaceAddress>> local_addresses();

/// The addresses of all that may be offered to other hosts. Pure.
/// names empty: all but loopback and link-local ones. Otherwise: those of the interfaces named, loopback too if it is
/// named. Names of which none is there, or having nothing to offer, are an error that says what there is.
Result<std::vector<InterfaceAddress>> usable_addresses(const std::vector<InterfaceAddress>& all,
                                                       const std::vector<std::string>& names);

}  // namespace ddl::net
