#include "net/tcp.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "base/deadline.h"
#include "support/catch.h"

using namespace ddl;
using namespace ddl::net;

namespace {

/// Waits until the socket is ready for events; false after ten seconds.
bool ready(int socket, short events) {
  pollfd entry{socket, events, 0};
  return ::poll(&entry, 1, 10'000) == 1;
}

int option_of(int socket, int level, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  ::getsockopt(socket, level, option, &value, &size);
  return value;
}

}  // namespace

TEST_CASE("a caller reaches a listener, and both ends are tuned") {
  const auto listener = listen_tcp(*SocketAddress::parse("127.0.0.1:0"), 4);
  REQUIRE(listener);
  const auto nobody = accept_tcp(listener->get());
  REQUIRE(nobody);
  CHECK_FALSE(*nobody);
  const auto address = local_address(listener->get());
  REQUIRE(address);
  CHECK(address->port() != 0);

  const auto caller = begin_connect(*address);
  REQUIRE(caller);
  REQUIRE(ready(caller->get(), POLLOUT));
  CHECK(connect_result(caller->get()));
  REQUIRE(ready(listener->get(), POLLIN));
  const auto callee = accept_tcp(listener->get());
  REQUIRE(callee);
  REQUIRE(*callee);
  CHECK(peer_address(callee->get())->to_text() == local_address(caller->get())->to_text());
  for (const int socket : {caller->get(), callee->get()}) {
    CHECK(option_of(socket, IPPROTO_TCP, TCP_NODELAY) == 1);
    CHECK(option_of(socket, SOL_SOCKET, SO_KEEPALIVE) == 1);
    CHECK(option_of(socket, IPPROTO_TCP, TCP_USER_TIMEOUT) == 10'000);
    CHECK((::fcntl(socket, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(socket, F_GETFL) & O_NONBLOCK) != 0);
  }
}

TEST_CASE("connecting to a port without a listener is an error") {
  UniqueFd unused;
  std::string address;
  {
    const auto listener = listen_tcp(*SocketAddress::parse("127.0.0.1:0"), 1);
    REQUIRE(listener);
    address = local_address(listener->get())->to_text();
  }
  const auto caller = begin_connect(*SocketAddress::parse(address));
  Status result;
  if (caller) {
    REQUIRE(ready(caller->get(), POLLOUT));
    result = connect_result(caller->get());
  } else {
    result = fail(caller.error());
  }
  REQUIRE_FALSE(result);
  CHECK(result.error().system_errno() == ECONNREFUSED);
}

TEST_CASE("a listener everywhere takes callers of both families") {
  const auto listener = listen_tcp_everywhere(4);
  REQUIRE(listener);
  const auto address = local_address(listener->get());
  REQUIRE(address);
  std::vector<std::string> hosts = {"127.0.0.1"};
  if (address->family() == AF_INET6) hosts.push_back("[::1]");
  for (const std::string& host : hosts) {
    INFO(host);
    const auto caller = begin_connect(*SocketAddress::parse(host + ":" + std::to_string(address->port())));
    REQUIRE(caller);
    pollfd waited{listener->get(), POLLIN, 0};
    REQUIRE(::poll(&waited, 1, 10'000) == 1);
    const auto accepted = accept_tcp(listener->get());
    REQUIRE(accepted);
    CHECK(*accepted);
  }
}

TEST_CASE("listeners of both families can have one port") {
  const auto v4 = listen_tcp(*SocketAddress::parse("0.0.0.0:0"), 1);
  REQUIRE(v4);
  auto v6 = listen_tcp(SocketAddress::parse("[::]:0")->with_port(local_address(v4->get())->port()), 1);
  if (!v6 && (v6.error().system_errno() == EAFNOSUPPORT || v6.error().system_errno() == EADDRNOTAVAIL))
    return;
  CHECK(v6);
}
