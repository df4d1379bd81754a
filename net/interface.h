// This host's network interfaces and the addresses that others may use to reach it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "net/address.h"

namespace ddl::net {

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
