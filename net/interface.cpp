#include "net/interface.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "base/text.h"

namespace ddl::net {
namespace {

/// The number of leading ones of a netmask; 0 if there is none.
int prefix_of(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  int bits = 0;
  if (mask->sa_family == AF_INET6) {
    for (const std::uint8_t byte : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr) {
      bits += std::countl_one(byte);
      if (byte != 0xFF) break;
    }
  } else {
    bits = std::countl_one(ntohl(reinterpret_cast<const sockaddr_in*>(mask)->sin_addr.s_addr));
  }
  return bits;
}

/// "eth0, ib0"; "none".
std::string names_of(const std::vector<InterfaceAddress>& all) {
  std::vector<std::string> names;
  for (const InterfaceAddress& entry : all) {
    if (std::find(names.begin(), names.end(), entry.interface) == names.end())
      names.push_back(entry.interface);
  }
  return names.empty() ? "none" : join(names, ", ");
}

}  // namespace

Result<std::vector<InterfaceAddress>> local_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return fail_errno("getifaddrs");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<InterfaceAddress> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    const auto address = SocketAddress::from(entry->ifa_addr);
    if (!address) continue;
    addresses.push_back({entry->ifa_name, *address, prefix_of(entry->ifa_netmask)});
  }
  return addresses;
}

Result<std::vector<InterfaceAddress>> usable_addresses(const std::vector<InterfaceAddress>& all,
                                                       const std::vector<std::string>& names) {
  const auto is_here = [&](const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const auto& entry) { return entry.interface == name; });
  };
  // One list for all hosts may name what only some of them have.
  if (!names.empty() && std::none_of(names.begin(), names.end(), is_here)) {
    return fail(ErrorCode::kNotFound, "no network interface \"" + join(names, "\" or \"") +
                                          "\" with an address is up here; there are: " + names_of(all));
  }
  std::vector<InterfaceAddress> usable;
  for (const InterfaceAddress& entry : all) {
    const bool is_named = std::find(names.begin(), names.end(), entry.interface) != names.end();
    if (entry.address.is_link_local() || (names.empty() ? entry.address.is_loopback() : !is_named)) continue;
    usable.push_back(entry);
  }
  if (usable.empty()) {
    return fail(ErrorCode::kUnavailable,
                "no address that other hosts could use; interfaces that are up: " + names_of(all));
  }
  return usable;
}

}  // namespace ddl::net
