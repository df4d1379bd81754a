#include "net/peer_user.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "base/fd.h"

namespace ddl::net {
namespace {

/// An end of a TCP connection as inet_diag writes it: both fields in network byte order. IPv4 in the first word.
struct TcpEnd {
  std::array<std::uint32_t, 4> address{};
  std::uint16_t port = 0;
  std::uint8_t family = AF_UNSPEC;
  std::uint32_t scope = 0;
};

std::optional<TcpEnd> end_of(const sockaddr_storage& storage) {
  TcpEnd end;
  if (storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    end.family = AF_INET;
    end.address[0] = in.sin_addr.s_addr;
    end.port = in.sin_port;
    return end;
  }
  if (storage.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 in{};
  std::memcpy(&in, &storage, sizeof in);
  end.port = in.sin6_port;
  if (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr)) {  // the other end is a socket of IPv4
    end.family = AF_INET;
    std::memcpy(&end.address[0], &in.sin6_addr.s6_addr[12], sizeof end.address[0]);
    return end;
  }
  end.family = AF_INET6;
  std::memcpy(end.address.data(), in.sin6_addr.s6_addr, sizeof in.sin6_addr.s6_addr);
  end.scope = in.sin6_scope_id;
  return end;
}

struct TcpEnds {
  TcpEnd near;
  TcpEnd far;
};

std::optional<TcpEnds> ends_of(int fd) {
  sockaddr_storage near{}, far{};
  socklen_t near_size = sizeof near, far_size = sizeof far;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&near), &near_size) != 0) return std::nullopt;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&far), &far_size) != 0) return std::nullopt;
  const auto near_end = end_of(near), far_end = end_of(far);
  if (!near_end || !far_end || near_end->family != far_end->family) return std::nullopt;
  return TcpEnds{*near_end, *far_end};
}

/// Asks for the one socket whose own address is the connection's far end. The kernel answers before send() returns.
std::optional<uid_t> ask_sock_diag(const TcpEnds& connection) {
  const UniqueFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink) return std::nullopt;
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 body{};
  } request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = connection.far.family;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0U;
  inet_diag_sockid& id = request.body.id;
  id.idiag_sport = connection.far.port;
  id.idiag_dport = connection.near.port;
  std::memcpy(id.idiag_src, connection.far.address.data(), sizeof id.idiag_src);
  std::memcpy(id.idiag_dst, connection.near.address.data(), sizeof id.idiag_dst);
  id.idiag_if = connection.far.scope;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (retry_eintr([&] { return ::send(netlink.get(), &request, sizeof request, 0); }) != sizeof request)
    return std::nullopt;

  alignas(nlmsghdr) std::array<char, 4096> buffer;
  sockaddr_nl sender{};
  socklen_t sender_size = sizeof sender;
  const ssize_t got = retry_eintr([&] {
    return ::recvfrom(netlink.get(), buffer.data(), buffer.size(), MSG_DONTWAIT,
                      reinterpret_cast<sockaddr*>(&sender), &sender_size);
  });
  nlmsghdr header{};
  inet_diag_msg found{};
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof found)) || sender.nl_pid != 0) return std::nullopt;
  std::memcpy(&header, buffer.data(), sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  std::memcpy(&found, buffer.data() + NLMSG_HDRLEN, sizeof found);
  // If there is no such connection, the kernel returns a listener on that port. A socket that its process has closed
  // while bytes were under way has no inode any more, and 0 for its user.
  const bool is_it = found.idiag_state != TCP_LISTEN && found.idiag_inode != 0 &&
                     found.id.idiag_sport == id.idiag_sport && found.id.idiag_dport == id.idiag_dport &&
                     std::memcmp(found.id.idiag_src, id.idiag_src, sizeof id.idiag_src) == 0 &&
                     std::memcmp(found.id.idiag_dst, id.idiag_dst, sizeof id.idiag_dst) == 0;
  return is_it ? std::optional<uid_t>(found.idiag_uid) : std::nullopt;
}

/// An end in the form of /proc/net/tcp: the address as words in host byte order, and the port as a number.
std::string proc_form(const TcpEnd& end) {
  std::array<char, 64> text;
  std::string form;
  for (std::size_t word = 0; word < (end.family == AF_INET6 ? 4U : 1U); ++word) {
    std::snprintf(text.data(), text.size(), "%08X", end.address[word]);
    form += text.data();
  }
  std::snprintf(text.data(), text.size(), ":%04X", ntohs(end.port));
  return form + text.data();
}

std::optional<uid_t> read_proc_net_tcp(const TcpEnds& connection) {
  std::ifstream file(connection.far.family == AF_INET6 ? "/proc/net/tcp6" : "/proc/net/tcp");
  const std::string ends = " " + proc_form(connection.far) + " " + proc_form(connection.near) + " ";
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find(ends);
    if (at == std::string::npos) continue;
    unsigned state = 0;
    unsigned long uid = 0, inode = 0;
    const int fields =
        std::sscanf(line.c_str() + at + ends.size(), "%x %*s %*s %*s %lu %*s %lu", &state, &uid, &inode);
    if (fields != 3 || state == TCP_LISTEN || inode == 0) return std::nullopt;
    return static_cast<uid_t>(uid);
  }
  return std::nullopt;
}

/// A connection of this process with itself.
Result<FdPair> connect_to_self() {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  FdPair pair;
  pair.first = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&in);
  socklen_t size = sizeof in;
  if (!listener || !pair.first || ::bind(listener.get(), address, size) != 0 ||
      ::listen(listener.get(), 1) != 0 || ::getsockname(listener.get(), address, &size) != 0 ||
      ::connect(pair.first.get(), address, size) != 0)
    return fail_errno("a connection over 127.0.0.1");
  pair.second = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!pair.second) return fail_errno("a connection over 127.0.0.1");
  return pair;
}

}  // namespace

std::optional<uid_t> user_of_peer(int connection, SocketLookup lookup) {
  const auto ends = ends_of(connection);
  if (!ends) return std::nullopt;
  return lookup == SocketLookup::kSockDiag ? ask_sock_diag(*ends) : read_proc_net_tcp(*ends);
}

Result<SocketLookup> find_socket_lookup() {
  auto connection = connect_to_self();
  if (!connection) return fail(std::move(connection.error()));
  for (const SocketLookup lookup : {SocketLookup::kSockDiag, SocketLookup::kProcNetTcp})
    if (user_of_peer(connection->second.get(), lookup) == ::geteuid()) return lookup;
  return fail(
      ErrorCode::kUnavailable,
      "the kernel does not say to whom a connection belongs, neither by sock_diag nor in /proc/net/tcp; "
      "load its module tcp_diag");
}

}  // namespace ddl::net
