// A server on a port that an agent holds, as programs of frameworks open it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/fd.h"
#include "support/catch.h"

namespace ddl::launcher::test {

/// A socket that listens on a port of all addresses, with IPv6 on those of IPv4, too; invalid, and errno, if it could
/// not be bound.
inline UniqueFd server_at(int port, bool reuses_address = true, int family = AF_INET) {
  UniqueFd server(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = reuses_address ? 1 : 0;
  sockaddr_in of4{};
  of4.sin_family = AF_INET;
  of4.sin_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in6 of6{};
  of6.sin6_family = AF_INET6;
  of6.sin6_port = of4.sin_port;
  const bool is_6 = family == AF_INET6;
  const auto* const address =
      is_6 ? reinterpret_cast<const sockaddr*>(&of6) : reinterpret_cast<const sockaddr*>(&of4);
  const bool listens = ::setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                       ::bind(server.get(), address, is_6 ? sizeof of6 : sizeof of4) == 0 &&
                       ::listen(server.get(), 4) == 0;
  return listens ? std::move(server) : UniqueFd();
}

inline bool has_ipv6() {
  const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  return socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
}

}  // namespace ddl::launcher::test
