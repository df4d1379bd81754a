#include "launcher/agent/node_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <memory>

namespace ddl::launcher {
namespace {

constexpr unsigned kUsable = IFF_UP | IFF_RUNNING;

bool is_link_local(const in_addr& address) {
  return (ntohl(address.s_addr) & 0xffff0000) == 0xa9fe0000;  // 169.254.0.0/16, RFC 3927
}

template <class Address>
std::string numeric(int family, const Address& address) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(family, &address, text, sizeof text);
  return text;
}

}  // namespace

std::vector<NodeAddress> node_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<NodeAddress> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & kUsable) != kUsable ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    if (entry->ifa_addr->sa_family == AF_INET) {
      const in_addr& address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
      if (!is_link_local(address)) addresses.push_back({entry->ifa_name, numeric(AF_INET, address), 4});
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&address)) {
        addresses.push_back({entry->ifa_name, numeric(AF_INET6, address), 6});
      }
    }
  }
  return addresses;
}

}  // namespace ddl::launcher
