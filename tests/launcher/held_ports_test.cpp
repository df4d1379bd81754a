#include "launcher/node/held_ports.h"

#include <cerrno>
#include <cstring>
#include <set>

#include "launcher/port_server.h"
#include "support/catch.h"

using ddl::UniqueFd;
using ddl::launcher::HeldPorts;
using ddl::launcher::may_have_listener;
using ddl::launcher::test::has_ipv6;
using ddl::launcher::test::server_at;

namespace {

/// 0, or the errno.
int listen_at(int port, bool reuses_address, int family = AF_INET) {
  return server_at(port, reuses_address, family) ? 0 : errno;
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

TEST_CASE("a listener on a held port is noticed, on whatever address, version of IP or device it listens") {
  HeldPorts held;
  const int port = held.hold(1).at(0);
  CHECK_FALSE(may_have_listener(port));

  struct Place {
    int family;
    const char* address;
    const char* device;
  };
  for (const Place& place :
       {Place{AF_INET, "0.0.0.0", nullptr}, Place{AF_INET, "127.0.0.7", nullptr},
        Place{AF_INET, "127.0.0.1", "lo"}, Place{AF_INET6, "::", nullptr}, Place{AF_INET6, "::1", nullptr}}) {
    if (place.family == AF_INET6 && !has_ipv6()) continue;
    CAPTURE(place.address);
    const bool is_6 = place.family == AF_INET6;
    UniqueFd server(::socket(place.family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    sockaddr_in of4{};
    of4.sin_family = AF_INET;
    of4.sin_port = htons(static_cast<std::uint16_t>(port));
    sockaddr_in6 of6{};
    of6.sin6_family = AF_INET6;
    of6.sin6_port = of4.sin_port;
    void* const to = is_6 ? static_cast<void*>(&of6.sin6_addr) : static_cast<void*>(&of4.sin_addr);
    REQUIRE(::inet_pton(place.family, place.address, to) == 1);
    REQUIRE(::setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    if (is_6) REQUIRE(::setsockopt(server.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0);
    if (place.device)
      REQUIRE(::setsockopt(server.get(), SOL_SOCKET, SO_BINDTODEVICE, place.device,
                           static_cast<socklen_t>(std::strlen(place.device))) == 0);
    const auto* const address =
        is_6 ? reinterpret_cast<const sockaddr*>(&of6) : reinterpret_cast<const sockaddr*>(&of4);
    REQUIRE(::bind(server.get(), address, is_6 ? sizeof of6 : sizeof of4) == 0);
    CHECK_FALSE(may_have_listener(port));
    REQUIRE(::listen(server.get(), 1) == 0);
    CHECK(may_have_listener(port));
    server.reset();
    CHECK_FALSE(may_have_listener(port));
  }
}
