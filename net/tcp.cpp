#include "net/tcp.h"

#include <netinet/tcp.h>

namespace ddl::net {
namespace {

Status set_option(int socket, int level, int option, int value, const char* name) {
  if (::setsockopt(socket, level, option, &value, sizeof value) != 0) {
    return fail_errno(std::string("setsockopt ") + name);
  }
  return {};
}

Result<UniqueFd> open_socket(const SocketAddress& address) {
  UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno("socket");
  return socket;
}

}  // namespace

namespace {

Result<UniqueFd> listen_on(const SocketAddress& address, int backlog, bool is_v6_only) {
  DDL_ASSIGN(socket, open_socket(address));
  if (address.family() == AF_INET6) {
    DDL_TRY(set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, is_v6_only ? 1 : 0, "IPV6_V6ONLY"));
  }
  // A port that was named may have connections that are closing.
  if (address.port() != 0) DDL_TRY(set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"));
  if (::bind(socket.get(), address.data(), address.size()) != 0)
    return fail_errno("bind to " + address.to_text());
  if (::listen(socket.get(), backlog) != 0) return fail_errno("listen");
  return socket;
}

}  // namespace

Result<UniqueFd> listen_tcp(const SocketAddress& address, int backlog) {
  // IPv6 alone: or it would also take the port of the IPv4 wildcard, which may be another process's.
  return listen_on(address, backlog, true);
}

Result<UniqueFd> listen_tcp_everywhere(int backlog) {
  DDL_ASSIGN(any, SocketAddress::parse("[::]:0"));
  auto both = listen_on(any, backlog, false);
  if (both) return both;
  DDL_ASSIGN(v4, SocketAddress::parse("0.0.0.0:0"));  // a kernel without IPv6
  return listen_on(v4, backlog, false);
}

Result<SocketAddress> local_address(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    return fail_errno("getsockname");
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&storage));
}

Result<SocketAddress> peer_address(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    return fail_errno("getpeername");
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&storage));
}

Result<UniqueFd> accept_tcp(int listener) {
  for (;;) {
    UniqueFd socket(
        retry_eintr([&] { return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); }));
    if (socket) {
      // It fails if the peer has closed the connection already, which the first read reports.
      (void)tune_stream(socket.get());
      return socket;
    }
    switch (errno) {
      case EAGAIN: return UniqueFd();
      // accept(2): errors of the new connection, or of the network, to be treated like EAGAIN by retrying.
      case ECONNABORTED:
      case ENETDOWN:
      case EPROTO:
      case ENOPROTOOPT:
      case EHOSTDOWN:
      case ENONET:
      case EHOSTUNREACH:
      case EOPNOTSUPP:
      case ENETUNREACH: continue;
      default: return fail_errno("accept");
    }
  }
}

Result<UniqueFd> begin_connect(const SocketAddress& address) {
  DDL_ASSIGN(socket, open_socket(address));
  DDL_TRY(tune_stream(socket.get()));
  // A connect() that a signal interrupts goes on by itself, like one that is in progress.
  if (::connect(socket.get(), address.data(), address.size()) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return fail_errno("connect to " + address.to_text());
  }
  return socket;
}

Status connect_result(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
    return fail_errno("getsockopt SO_ERROR");
  if (error != 0) return fail(errno_error("connect", error));
  return {};
}

Status tune_stream(int socket) {
  constexpr int kIdleSeconds = 5, kIntervalSeconds = 1;
  constexpr int kSilence = static_cast<int>(kPeerSilence.count());
  DDL_TRY(set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"));
  DDL_TRY(set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"));
  DDL_TRY(set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds, "TCP_KEEPIDLE"));
  DDL_TRY(set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kIntervalSeconds, "TCP_KEEPINTVL"));
  DDL_TRY(set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, (kSilence - kIdleSeconds) / kIntervalSeconds,
                     "TCP_KEEPCNT"));
  return set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilence * 1000, "TCP_USER_TIMEOUT");
}

}  // namespace ddl::net
