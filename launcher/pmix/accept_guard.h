// Who may connect to the PMIx server: processes of the job's own user, and no others.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/error.h"

namespace ddl::launcher {

// libpmix listens on a TCP port of the loopback interface, to which every user of the node can connect, and reads
// lengths that a peer sends before it knows whose process the peer is. So a connection of another user must not get
// that far. libpmix calls accept(); this program exports a function of that name, and the dynamic linker gives
// libraries the executable's. That function accepts, asks the kernel to which user the other end belongs, and closes
// the connection of another user. It does so for whatever library calls it; the program's own calls are passed on
// unchanged.

/// How to ask the kernel to which user a TCP socket of this machine belongs.
enum class SocketLookup : std::uint8_t {
  kSockDiag,    ///< sock_diag(7), about exactly one socket
  kProcNetTcp,  ///< /proc/net/tcp and tcp6, where a kernel has no sock_diag
};

/// The user to whom the other end of a TCP connection belongs. nullopt if that end is not on this machine (or in this
/// network namespace), if no process has it open any more, or if the kernel does not answer.
std::optional<uid_t> user_of_peer(int connection, SocketLookup lookup);

/// To be called before libpmix listens. Error kUnavailable: accept() is not guarded in this program, or this kernel
/// does not say to whom sockets belong.
Status check_accept_guard();

}  // namespace ddl::launcher
