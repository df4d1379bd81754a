#include "net/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "base/text.h"

namespace ddl::net {
namespace {

const sockaddr_in& as_v4(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& as_v6(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in6&>(storage);
}

}  // namespace

SocketAddress::SocketAddress() { storage_.ss_family = AF_INET; }

SocketAddress SocketAddress::loopback() {
  SocketAddress address;
  reinterpret_cast<sockaddr_in&>(address.storage_).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Result<SocketAddress> SocketAddress::parse(std::string_view text) {
  const auto not_one = [&] {
    return fail(ErrorCode::kInvalidArgument, "\"" + std::string(text.substr(0, 100)) +
                                                 "\" is not an address such as 192.0.2.1:80 or "
                                                 "[2001:db8::1]:80");
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return not_one();
  const auto port = parse_integer(text.substr(colon + 1));
  if (!port || *port < 0 || *port > UINT16_MAX || text[colon + 1] == '+' || text[colon + 1] == '-')
    return not_one();
  std::string host(text.substr(0, colon));
  // inet_pton() reads up to the first zero byte.
  if (host.find('\0') != std::string::npos) return not_one();
  SocketAddress address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return not_one();
    std::memcpy(&address.storage_, &v6, sizeof v6);
  } else {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) return not_one();
    std::memcpy(&address.storage_, &v4, sizeof v4);
  }
  return address.with_port(static_cast<std::uint16_t>(*port));
}

Result<SocketAddress> SocketAddress::from(const sockaddr* address) {
  SocketAddress result;
  if (address != nullptr && address->sa_family == AF_INET) {
    std::memcpy(&result.storage_, address, sizeof(sockaddr_in));
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    std::memcpy(&result.storage_, address, sizeof(sockaddr_in6));
  } else {
    return fail(ErrorCode::kInvalidArgument, "an address that is neither IPv4 nor IPv6");
  }
  return result;
}

std::uint16_t SocketAddress::port() const {
  return ntohs(family() == AF_INET6 ? as_v6(storage_).sin6_port : as_v4(storage_).sin_port);
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const {
  SocketAddress result = *this;
  if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(result.storage_).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(result.storage_).sin_port = htons(port);
  }
  return result;
}

std::string_view SocketAddress::host_bytes() const {
  const bool is_v6 = family() == AF_INET6;
  const void* bytes = is_v6 ? static_cast<const void*>(&as_v6(storage_).sin6_addr)
                            : static_cast<const void*>(&as_v4(storage_).sin_addr);
  return {static_cast<const char*>(bytes), is_v6 ? std::size_t{16} : std::size_t{4}};
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&as_v6(storage_).sin6_addr);
  return host_bytes()[0] == 127;
}

bool SocketAddress::is_link_local() const {
  if (family() == AF_INET6) return IN6_IS_ADDR_LINKLOCAL(&as_v6(storage_).sin6_addr);
  // 169.254.0.0/16 (RFC 3927)
  return host_bytes().substr(0, 2) == "\xA9\xFE";
}

bool SocketAddress::shares_prefix(const SocketAddress& other, int prefix_bits) const {
  const std::string_view own = host_bytes(), others = other.host_bytes();
  if (own.size() != others.size() || prefix_bits < 0 || prefix_bits > static_cast<int>(own.size()) * 8)
    return false;
  const auto whole = static_cast<std::size_t>(prefix_bits / 8);
  if (own.substr(0, whole) != others.substr(0, whole)) return false;
  const int rest = prefix_bits % 8;
  if (rest == 0) return true;
  const int difference = static_cast<unsigned char>(own[whole]) ^ static_cast<unsigned char>(others[whole]);
  return difference >> (8 - rest) == 0;
}

std::string SocketAddress::host_text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family(), host_bytes().data(), text.data(), text.size());
  return text.data();
}

std::string SocketAddress::to_text() const {
  const std::string host = host_text();
  return (family() == AF_INET6 ? "[" + host + "]" : host) + ":" + std::to_string(port());
}

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
