#include "launcher/node/held_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace ddl::launcher {
namespace {

/// Binds a new socket of IPv6, and of IPv4 with it, or of IPv4 alone. Invalid: errno says why.
UniqueFd bound_socket(int family, int port) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1, off = 0;
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = any6.sin6_port;
  const bool is_6 = family == AF_INET6;
  const auto* address =
      is_6 ? reinterpret_cast<const sockaddr*>(&any6) : reinterpret_cast<const sockaddr*>(&any);
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      (is_6 && ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) ||
      ::bind(socket.get(), address, is_6 ? sizeof any6 : sizeof any) != 0)
    return UniqueFd();
  return socket;
}

/// On both versions of IP, or on IPv4 where there is no IPv6. Port 0: the kernel chooses one.
UniqueFd holder(int port) {
  UniqueFd both = bound_socket(AF_INET6, port);
  return both || errno == EADDRINUSE ? std::move(both) : bound_socket(AF_INET, port);
}

int port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

}  // namespace

std::vector<int> HeldPorts::hold(int count) {
  std::vector<int> added;
  while (std::ssize(added) < count) {
    UniqueFd socket = holder(0);
    const int port = socket ? port_of(socket.get()) : 0;
    if (port == 0) break;
    sockets_.push_back(std::move(socket));
    added.push_back(port);
  }
  return added;
}

bool may_have_listener(int port) { return !holder(port); }

}  // namespace ddl::launcher
