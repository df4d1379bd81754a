#include "launcher/node/held_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

namespace ddl::launcher {
namespace {

/// 0: it could not be bound.
int bind_anywhere(int socket, const sockaddr* address, socklen_t bytes) {
  const int on = 1;
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket, address, bytes) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

/// On both versions of IP, or on IPv4 where there is no IPv6.
std::pair<UniqueFd, int> held_port() {
  UniqueFd both(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int off = 0;
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  if (both && ::setsockopt(both.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) {
    const int port = bind_anywhere(both.get(), reinterpret_cast<const sockaddr*>(&any6), sizeof any6);
    if (port != 0) return {std::move(both), port};
  }
  UniqueFd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  const int port = one ? bind_anywhere(one.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) : 0;
  return {std::move(one), port};
}

}  // namespace

std::vector<int> HeldPorts::hold(std::size_t count) {
  std::vector<int> added;
  while (added.size() < count) {
    auto [socket, port] = held_port();
    if (port == 0) break;
    sockets_.push_back(std::move(socket));
    added.push_back(port);
  }
  return added;
}

}  // namespace ddl::launcher
