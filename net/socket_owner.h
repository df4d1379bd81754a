// Whose the TCP sockets of this machine are: the other end of a connection, and those of a port.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"

namespace ddl::net {

/// How to ask the kernel to whom a TCP socket of this machine belongs.
enum class SocketLookup : std::uint8_t {
  kSockDiag,    ///< sock_diag(7)
  kProcNetTcp,  ///< /proc/net/tcp and tcp6, where a kernel has no sock_diag
};

/// The user to whom the other end of a TCP connection belongs. nullopt if that end is not on this machine (or in this
/// network namespace), if no process has it open any more, or if the kernel does not answer.
std::optional<uid_t> user_of_peer(int connection, SocketLookup lookup);

/// The first lookup that works here: tried with a connection of this process to itself over 127.0.0.1. Error
/// kUnavailable: none does.
Result<SocketLookup> find_socket_lookup();

/// A TCP socket of this network namespace that a process has open.
struct TcpSocket {
  int port = 0;  ///< its own
  uid_t user = 0;
  std::uint64_t inode = 0;  ///< as in /proc/PID/fd: "socket:[4711]"
};

/// All sockets that listen, on IPv4 and IPv6; none if the kernel does not answer. The cost grows with the machine's
/// listeners, not with its connections.
std::vector<TcpSocket> tcp_listeners(SocketLookup lookup);

/// All sockets with this port of their own, connections as well as listeners. The kernel walks through all connections
/// of the machine.
std::vector<TcpSocket> tcp_sockets_at(int port, SocketLookup lookup);

}  // namespace ddl::net
