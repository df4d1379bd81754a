#include "net/socket_owner.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
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

/// A socket of netlink to which the kernel's answers come; invalid: it does not take the question.
UniqueFd ask_sock_diag(const inet_diag_req_v2& question, std::uint16_t flags) {
  UniqueFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 body{};
  } request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  request.body = question;
  if (!netlink || retry_eintr([&] { return ::send(netlink.get(), &request, sizeof request, 0); }) !=
                      static_cast<ssize_t>(sizeof request))
    return UniqueFd();
  return netlink;
}

/// The next part of the kernel's answer, which is there already; 0: there is none.
std::size_t receive_answer(int netlink, std::span<char> buffer) {
  sockaddr_nl sender{};
  socklen_t sender_size = sizeof sender;
  const ssize_t got = retry_eintr([&] {
    return ::recvfrom(netlink, buffer.data(), buffer.size(), MSG_DONTWAIT,
                      reinterpret_cast<sockaddr*>(&sender), &sender_size);
  });
  return got > 0 && sender.nl_pid == 0 ? static_cast<std::size_t>(got) : 0;
}

/// Asks for the one socket whose own address is the connection's far end. The kernel answers before send() returns.
std::optional<uid_t> ask_for_peer(const TcpEnds& connection) {
  inet_diag_req_v2 question{};
  question.sdiag_family = connection.far.family;
  question.sdiag_protocol = IPPROTO_TCP;
  question.idiag_states = ~0U;
  inet_diag_sockid& id = question.id;
  id.idiag_sport = connection.far.port;
  id.idiag_dport = connection.near.port;
  std::memcpy(id.idiag_src, connection.far.address.data(), sizeof id.idiag_src);
  std::memcpy(id.idiag_dst, connection.near.address.data(), sizeof id.idiag_dst);
  id.idiag_if = connection.far.scope;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const UniqueFd netlink = ask_sock_diag(question, 0);
  if (!netlink) return std::nullopt;

  std::array<char, 4096> buffer;
  const std::size_t got = receive_answer(netlink.get(), buffer);
  nlmsghdr header{};
  inet_diag_msg found{};
  if (got < NLMSG_LENGTH(sizeof found)) return std::nullopt;
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

/// Of sockets that are listed.
struct Wanted {
  bool only_listeners = false;
  int port = 0;  ///< 0: any
};

/// Takes a part of the kernel's answer. False: it was the last one.
bool take_listed(std::span<const char> bytes, std::vector<TcpSocket>& to) {
  while (bytes.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    inet_diag_msg found{};
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || header.nlmsg_len < NLMSG_LENGTH(sizeof found) ||
        header.nlmsg_len > bytes.size())
      return false;
    std::memcpy(&found, bytes.data() + NLMSG_HDRLEN, sizeof found);
    to.push_back({ntohs(found.id.idiag_sport), found.idiag_uid, found.idiag_inode});
    bytes = bytes.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), bytes.size()));
  }
  return true;
}

void list_by_sock_diag(std::uint8_t family, const Wanted& wanted, std::vector<TcpSocket>& to) {
  inet_diag_req_v2 question{};
  question.sdiag_family = family;
  question.sdiag_protocol = IPPROTO_TCP;
  // Not what is only bound, which newer kernels would list, too.
  constexpr std::uint32_t kUpToClosing = (1U << (TCP_CLOSING + 1)) - 1;
  question.idiag_states = wanted.only_listeners ? 1U << TCP_LISTEN : kUpToClosing;
  question.id.idiag_sport = htons(static_cast<std::uint16_t>(wanted.port));
  const UniqueFd netlink = ask_sock_diag(question, NLM_F_DUMP);
  constexpr std::size_t kPart = 1 << 15;  // the kernel makes none that is larger
  std::vector<char> buffer(kPart);
  for (bool more = static_cast<bool>(netlink); more;) {
    const std::size_t got = receive_answer(netlink.get(), buffer);
    more = got > 0 && take_listed(std::span(buffer).first(got), to);
  }
}

void list_by_proc(const char* path, const Wanted& wanted, std::vector<TcpSocket>& to) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // the names of the columns
  while (std::getline(file, line)) {
    unsigned port = 0, state = 0;
    unsigned long user = 0, inode = 0;
    if (std::sscanf(line.c_str(), "%*s %*[0-9A-F]:%x %*s %x %*s %*s %*s %lu %*s %lu", &port, &state, &user,
                    &inode) != 4)
      continue;
    // The kernel lists those that listen first.
    if (wanted.only_listeners && state != TCP_LISTEN) return;
    if (wanted.port == 0 || static_cast<int>(port) == wanted.port)
      to.push_back({static_cast<int>(port), static_cast<uid_t>(user), inode});
  }
}

std::vector<TcpSocket> listed(const Wanted& wanted, SocketLookup lookup) {
  std::vector<TcpSocket> sockets;
  if (lookup == SocketLookup::kSockDiag) {
    for (const std::uint8_t family : {AF_INET, AF_INET6}) list_by_sock_diag(family, wanted, sockets);
  } else {
    for (const char* const path : {"/proc/net/tcp", "/proc/net/tcp6"}) list_by_proc(path, wanted, sockets);
  }
  // No process has it open: not accepted yet, or closed and not gone.
  std::erase_if(sockets, [](const TcpSocket& socket) { return socket.inode == 0; });
  return sockets;
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
  return lookup == SocketLookup::kSockDiag ? ask_for_peer(*ends) : read_proc_net_tcp(*ends);
}

std::vector<TcpSocket> tcp_listeners(SocketLookup lookup) { return listed({true, 0}, lookup); }

std::vector<TcpSocket> tcp_sockets_at(int port, SocketLookup lookup) { return listed({false, port}, lookup); }

Result<SocketLookup> find_socket_lookup() {
  DDL_ASSIGN(connection, connect_to_self());
  for (const SocketLookup lookup : {SocketLookup::kSockDiag, SocketLookup::kProcNetTcp})
    if (user_of_peer(connection.second.get(), lookup) == ::geteuid()) return lookup;
  return fail(
      ErrorCode::kUnavailable,
      "the kernel does not say to whom a connection belongs, neither by sock_diag nor in /proc/net/tcp; "
      "load its module tcp_diag");
}

}  // namespace ddl::net
