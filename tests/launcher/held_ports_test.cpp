#include "launcher/node/held_ports.h"

#include <cerrno>
#include <set>

#include "launcher/port_server.h"
#include "support/catch.h"

using ddl::launcher::HeldPorts;
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
