#include "launcher/node/held_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <set>

#include "support/catch.h"

using ddl::UniqueFd;
using ddl::launcher::HeldPorts;

namespace {

/// A server on a port of all addresses, as programs open it; its errno, or 0.
int listen_at(int port, bool reuses_address, int family = AF_INET) {
  const UniqueFd server(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(server);
  const int on = reuses_address ? 1 : 0;
  REQUIRE(::setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  sockaddr_in of4{};
  of4.sin_family = AF_INET;
  of4.sin_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in6 of6{};
  of6.sin6_family = AF_INET6;
  of6.sin6_port = of4.sin_port;
  const int bound = family == AF_INET6
                        ? ::bind(server.get(), reinterpret_cast<const sockaddr*>(&of6), sizeof of6)
                        : ::bind(server.get(), reinterpret_cast<const sockaddr*>(&of4), sizeof of4);
  if (bound != 0) return errno;
  return ::listen(server.get(), 4) == 0 ? 0 : errno;
}

bool has_ipv6() {
  const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  return socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
}

}  // namespace

TEST_CASE("a held port is for a server that reuses addresses, and for no other") {
  HeldPorts held;
  const std::vector<int> ports = held.hold(3);
  REQUIRE(ports.size() == 3);
  CHECK(std::set<int>(ports.begin(), ports.end()).size() == 3);
  for (const int port : ports) {
    CAPTURE(port);
    CHECK(listen_at(port, true) == 0);
    CHECK(listen_at(port, false) == EADDRINUSE);
    if (has_ipv6()) CHECK(listen_at(port, true, AF_INET6) == 0);
  }
}

TEST_CASE("ports that are held for others are different, and free again afterwards") {
  int port = 0;
  {
    HeldPorts one, other;
    port = one.hold(1).at(0);
    for (const int number : other.hold(20)) CHECK(number != port);
    for (const int number : one.hold(20)) CHECK(number != port);
  }
  CHECK(listen_at(port, false) == 0);
}
