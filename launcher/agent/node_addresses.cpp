#include "launcher/agent/node_addresses.h"

#include "net/address.h"

namespace ddl::launcher {

std::vector<NodeAddress> node_addresses() {
  const auto all = net::local_addresses();
  if (!all) return {};
  const auto usable = net::usable_addresses(*all, {});
  if (!usable) return {};
  std::vector<NodeAddress> addresses;
  for (const net::InterfaceAddress& one : *usable) {
    addresses.push_back({one.interface, one.address.host_text(), one.address.family() == AF_INET6 ? 6 : 4});
  }
  return addresses;
}

}  // namespace ddl::launcher
