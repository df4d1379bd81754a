#include "runtime/src/shm/fd_passing.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fd.h"
#include "runtime/src/common/interruption.h"

namespace ddl::runtime {
namespace {

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t length = 0;

  explicit AbstractAddress(std::string_view name) {
    // A leading zero byte makes the name abstract; it is not zero-terminated, so the length counts (unix(7)).
    DDL_CHECK(!name.empty() && name.size() < sizeof address.sun_path, std::string(name));
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

}  // namespace

Result<UniqueFd> listen_local(std::string_view name, int backlog) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno("socket");
  const AbstractAddress address(name);
  if (::bind(socket.get(), address.get(), address.length) != 0)
    return fail_errno("bind of @" + std::string(name));
  if (::listen(socket.get(), backlog) != 0) return fail_errno("listen");
  return socket;
}

Result<UniqueFd> connect_local(std::string_view name, Deadline deadline) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno("socket");
  DDL_TRY(limit_blocking(socket.get(), deadline));
  const AbstractAddress address(name);
  if (retry_eintr([&] { return ::connect(socket.get(), address.get(), address.length); }) != 0) {
    return fail_errno("connect to @" + std::string(name));
  }
  return socket;
}

Result<UniqueFd> connect_local_now(std::string_view name) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno("socket");
  const AbstractAddress address(name);
  if (::connect(socket.get(), address.get(), address.length) != 0)
    return fail_errno("connect to @" + std::string(name));
  return socket;
}

Result<PeerCredentials> peer_credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return fail_errno("getsockopt SO_PEERCRED");
  }
  return PeerCredentials{credentials.pid, credentials.uid};
}

Status limit_blocking(int socket, Deadline deadline) {
  timeval limit{};
  if (!deadline.is_never()) {
    const auto left = std::max(deadline.remaining(), Deadline::Clock::duration(std::chrono::milliseconds(1)));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    limit.tv_sec = static_cast<time_t>(seconds.count());
    limit.tv_usec = static_cast<suseconds_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(left - seconds).count());
  }
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (::setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit) != 0) return fail_errno("setsockopt");
  }
  return {};
}

Status wait_readable(int socket, const ConnectLimit& limit) {
  std::array<pollfd, 2> entries{{{socket, POLLIN, 0}, {limit.doorbell, POLLIN, 0}}};
  const int ready = poll_interruptibly(entries, limit.deadline);
  if (ready < 0) return fail_errno("poll");
  // Data that have arrived take precedence over the doorbell.
  if (entries[0].revents != 0) return {};
  if (ready > 0) return fail(ErrorCode::kClosed, "the ranks were aborted meanwhile");
  return fail(ErrorCode::kTimeout, "nothing came in time");
}

Status receive_exactly(int socket, std::span<std::byte> buffer, std::vector<UniqueFd>& fds) {
  while (!buffer.empty()) {
    auto received = receive_with_fds(socket, buffer);
    if (!received) {
      const int error = received.error().system_errno();
      if (error == EAGAIN || error == EWOULDBLOCK) return fail(ErrorCode::kTimeout, "no answer in time");
      return fail(std::move(received.error()));
    }
    if (received->size == 0) return fail(ErrorCode::kClosed, "the connection was closed");
    for (UniqueFd& fd : received->fds) fds.push_back(std::move(fd));
    buffer = buffer.subspan(received->size);
  }
  return {};
}

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Result<UniqueFd> make_sealed_memory(std::size_t size) {
  UniqueFd fd(::memfd_create("ddl", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return fail_errno("ftruncate of a memfd to " + std::to_string(size) + " bytes");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return fail_errno("fcntl F_ADD_SEALS");
  return fd;
}

Result<std::size_t> check_sealed_memory(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return fail_errno("fcntl F_GET_SEALS");
  if ((seals & kSeals) != kSeals)
    return fail(ErrorCode::kProtocol, "shared memory arrived without its seals");
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno("fstat of shared memory");
  return static_cast<std::size_t>(info.st_size);
}

}  // namespace ddl::runtime
