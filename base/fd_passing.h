// Bytes and file descriptors over a Unix stream socket (SCM_RIGHTS).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/unique_fd.h"

namespace ddl {

/// The kernel takes at most this many descriptors in one message (SCM_MAX_FD, unix(7)).
inline constexpr std::size_t kMaxPassedFds = 253;

/// Sends all of data on a blocking stream socket; the descriptors travel with its first byte and stay the caller's.
/// data must not be empty, and fds.size() is at most kMaxPassedFds.
Status send_with_fds(int socket, std::span<const std::byte> data, std::span<const int> fds);

struct ReceivedBytes {
  std::size_t size = 0;       ///< 0 at end of stream
  std::vector<UniqueFd> fds;  ///< close-on-exec; those of every message that the bytes came from
};

/// One recvmsg() into buffer. Truncated descriptors are an error. On a non-blocking socket with nothing to read the
/// error's system_errno() is EAGAIN.
Result<ReceivedBytes> receive_with_fds(int socket, std::span<std::byte> buffer);

}  // namespace ddl
