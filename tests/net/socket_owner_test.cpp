#include "net/socket_owner.h"

#include <netinet/in.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "support/catch.h"
#include "support/skip.h"

using namespace ddl;
using namespace ddl::net;

namespace {

constexpr uid_t kNobody = 65534;

/// Sockets made meanwhile by this thread are another user's.
class AsUser {
 public:
  explicit AsUser(uid_t user) : before_(static_cast<uid_t>(::setfsuid(user))) {}
  ~AsUser() { ::setfsuid(before_); }

 private:
  uid_t before_;
};

struct Kind {
  const char* name;
  int server;  ///< the family of the socket that listens, and of the one that connects
  int client;
};
constexpr Kind kKinds[] = {
    {"IPv4", AF_INET, AF_INET}, {"IPv6", AF_INET6, AF_INET6}, {"IPv4 mapped to IPv6", AF_INET6, AF_INET}};

/// A connection over the loopback interface; near is what accept() gave. Without descriptors where there is no IPv6.
struct LoopbackPair {
  UniqueFd near, far;
};

sockaddr_in6 any_v6() {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  return address;
}

/// user: of the one that connects; server_user: of the one that listens, which kept gets.
LoopbackPair connect_over_loopback(const Kind& kind, uid_t user = ::geteuid(),
                                   uid_t server_user = ::geteuid(), UniqueFd* kept = nullptr) {
  sockaddr_in6 v6 = any_v6();
  if (kind.client == AF_INET6) v6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* to_bind =
      kind.server == AF_INET6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  socklen_t size = kind.server == AF_INET6 ? sizeof v6 : sizeof v4;
  UniqueFd listener;
  {
    const AsUser as(server_user);
    listener = UniqueFd(::socket(kind.server, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  if (!listener || ::bind(listener.get(), to_bind, size) != 0) return {};
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), to_bind, &size) == 0);
  if (kind.server != kind.client) v4.sin_port = v6.sin6_port;
  auto* to_reach =
      kind.client == AF_INET6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  LoopbackPair pair;
  {
    const AsUser as(user);
    pair.far = UniqueFd(::socket(kind.client, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  REQUIRE(::connect(pair.far.get(), to_reach, kind.client == AF_INET6 ? sizeof v6 : sizeof v4) == 0);
  pair.near = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(pair.near);
  if (kept != nullptr) *kept = std::move(listener);
  return pair;
}

int local_port(int socket) {
  sockaddr_in6 address{};  // the port is at the same place with IPv4
  socklen_t size = sizeof address;
  REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin6_port);
}

std::uint64_t inode_of(int fd) {
  struct stat status {};
  REQUIRE(::fstat(fd, &status) == 0);
  return status.st_ino;
}

}  // namespace

TEST_CASE("the user at the other end of a connection is found by each of the kernel's interfaces") {
  for (const Kind& kind : kKinds) {
    const LoopbackPair pair = connect_over_loopback(kind);
    if (!pair.near) continue;
    for (const SocketLookup lookup : {SocketLookup::kSockDiag, SocketLookup::kProcNetTcp}) {
      CAPTURE(kind.name, static_cast<int>(lookup));
      CHECK(user_of_peer(pair.near.get(), lookup) == ::geteuid());
      if (kind.server == kind.client) CHECK(user_of_peer(pair.far.get(), lookup) == ::geteuid());
    }
  }
}

TEST_CASE("a connection of another user is distinguished from one's own") {
  if (::geteuid() != 0) DDL_SKIP("only root makes sockets of another user");
  for (const Kind& kind : kKinds) {
    const LoopbackPair pair = connect_over_loopback(kind, kNobody);
    if (!pair.near) continue;
    for (const SocketLookup lookup : {SocketLookup::kSockDiag, SocketLookup::kProcNetTcp}) {
      CAPTURE(kind.name, static_cast<int>(lookup));
      CHECK(user_of_peer(pair.near.get(), lookup) == kNobody);
      if (kind.server == kind.client) CHECK(user_of_peer(pair.far.get(), lookup) == ::geteuid());
    }
  }
}

TEST_CASE("a peer that has sent something and closed at once has no user") {
  for (const bool sends : {true, false}) {
    for (const Kind& kind : kKinds) {
      LoopbackPair pair = connect_over_loopback(kind);
      if (!pair.near) continue;
      if (sends) REQUIRE(::send(pair.far.get(), "\0\0\0\0", 4, 0) == 4);
      pair.far.reset();
      for (const SocketLookup lookup : {SocketLookup::kSockDiag, SocketLookup::kProcNetTcp}) {
        CAPTURE(kind.name, sends, static_cast<int>(lookup));
        CHECK(user_of_peer(pair.near.get(), lookup) == std::nullopt);
      }
    }
  }
}

TEST_CASE("a socket that is not a TCP connection has no user") {
  auto pair = make_socket_pair(SOCK_STREAM);
  REQUIRE(pair);
  const UniqueFd unconnected(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const SocketLookup lookup : {SocketLookup::kSockDiag, SocketLookup::kProcNetTcp}) {
    CHECK(user_of_peer(pair->first.get(), lookup) == std::nullopt);
    CHECK(user_of_peer(unconnected.get(), lookup) == std::nullopt);
    CHECK(user_of_peer(-1, lookup) == std::nullopt);
  }
}

TEST_CASE("the lookup that is found tells one's own connection") {
  const auto lookup = find_socket_lookup();
  REQUIRE(lookup);
  const LoopbackPair pair = connect_over_loopback(kKinds[0]);
  CHECK(user_of_peer(pair.near.get(), *lookup) == ::geteuid());
}

TEST_CASE("those who listen on a port, and those who are connected to it, are listed with their users") {
  const uid_t user = ::geteuid() == 0 ? kNobody : ::geteuid();
  for (const Kind& kind : kKinds) {
    UniqueFd listener;
    const LoopbackPair pair = connect_over_loopback(kind, ::geteuid(), user, &listener);
    if (!pair.near) continue;
    const int port = local_port(listener.get());
    for (const SocketLookup lookup : {SocketLookup::kSockDiag, SocketLookup::kProcNetTcp}) {
      CAPTURE(kind.name, static_cast<int>(lookup), port);
      std::vector<TcpSocket> listening = tcp_listeners(lookup);
      std::erase_if(listening, [&](const TcpSocket& socket) { return socket.port != port; });
      REQUIRE(listening.size() == 1);
      CHECK(listening[0].user == user);
      CHECK(listening[0].inode == inode_of(listener.get()));
      std::set<std::uint64_t> inodes;
      for (const TcpSocket& socket : tcp_sockets_at(port, lookup)) inodes.insert(socket.inode);
      CHECK(inodes == std::set<std::uint64_t>{inode_of(listener.get()), inode_of(pair.near.get())});
    }
  }
}
