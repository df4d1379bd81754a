#include "base/fd_passing.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstring>

namespace ddl {
namespace {

// cmsg buffers must be aligned as cmsghdr is (cmsg(3)).
union ControlBuffer {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int) * kMaxPassedFds)];
};

}  // namespace

Status send_with_fds(int socket, std::span<const std::byte> data, std::span<const int> fds) {
  DDL_CHECK(!data.empty() && fds.size() <= kMaxPassedFds, std::to_string(fds.size()) + " descriptors");
  while (!data.empty()) {
    iovec part{const_cast<std::byte*>(data.data()), data.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ControlBuffer control{};
    if (!fds.empty()) {
      message.msg_control = control.bytes;
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    const ssize_t sent = retry_eintr([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
    if (sent < 0) return fail_errno("sendmsg");
    data = data.subspan(static_cast<std::size_t>(sent));
    fds = {};
  }
  return {};
}

Result<ReceivedBytes> receive_with_fds(int socket, std::span<std::byte> buffer) {
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = retry_eintr([&] { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC); });
  if (got < 0) return fail_errno("recvmsg");

  ReceivedBytes received;
  received.size = static_cast<std::size_t>(got);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      received.fds.emplace_back(fd);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return fail(ErrorCode::kSystem,
                "recvmsg: file descriptors were dropped; the limit of open files (ulimit -n) is too low");
  }
  return received;
}

}  // namespace ddl
