// To which user of this machine the other end of a TCP connection belongs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/error.h"

namespace ddl::net {

/// How to ask the kernel to which user a TCP socket of this machine belongs.
enum class SocketLookup : std::uint8_t {
  kSockDiag,    ///< sock_diag(7), about exactly one socket
  kProcNetTcp,  ///< /proc/net/tcp and tcp6, where a kernel has no sock_diag
};

/// The user to whom the other end of a TCP connection belongs. nullopt if that end is not on this machine (or in this
/// network namespace), if no process has it open any more, or if the kernel does not answer.
std::optional<uid_t> user_of_peer(int connection, SocketLookup lookup);

/// The first lookup that works here: tried with a connection of this process to itself over 127.0.0.1. Error
/// kUnavailable: none does.
Result<SocketLookup> find_socket_lookup();

}  // namespace ddl::net
