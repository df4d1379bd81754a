// How the ranks of one host pass memory to each other: Unix sockets under abstract names, and sealed memfds.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "runtime/src/common/wait_limits.h"

namespace ddl::runtime {

// Unix stream sockets under abstract names: they need no file and vanish with their last descriptor.

/// A non-blocking listener. name is the part after "@" in /proc/net/unix.
Result<UniqueFd> listen_local(std::string_view name, int backlog);
/// A blocking connection.
Result<UniqueFd> connect_local(std::string_view name, Deadline deadline);
/// A non-blocking one, at once: an error with EAGAIN if the listener's queue is full.
Result<UniqueFd> connect_local_now(std::string_view name);

/// The process that connected, as the kernel recorded it; pid is 0 if it is not visible in this pid namespace.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
};
Result<PeerCredentials> peer_credentials(int socket);

/// Makes blocking calls on the socket fail (EAGAIN) after the time that is left until the deadline.
Status limit_blocking(int socket, Deadline deadline);

/// Waits until there is something to read. The limit is an error with code kTimeout, or kClosed for the doorbell.
Status wait_readable(int socket, const ConnectLimit& limit);

/// Fills buffer from a blocking socket; descriptors that arrive are appended to fds. The other side's closing is an
/// error with code kClosed, a limit_blocking() that ran out one with kTimeout.
Status receive_exactly(int socket, std::span<std::byte> buffer, std::vector<UniqueFd>& fds);

// Shared memory without a name: a memfd whose size is sealed, so that no holder can shrink it and make another fault.

/// Zeroed memory of size bytes, sealed against shrinking, growing and unsealing. Pages are charged when first
/// written.
Result<UniqueFd> make_sealed_memory(std::size_t size);

/// The size of sealed memory that another process made; an error if the size could change.
Result<std::size_t> check_sealed_memory(int fd);

}  // namespace ddl::runtime
