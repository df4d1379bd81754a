#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace ddl {

void UniqueFd::reset(int fd) {
  // close() is not retried: on Linux the descriptor is gone even after EINTR.
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<FdPair> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return fail_errno("pipe2");
  return FdPair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Result<FdPair> make_socket_pair(int type) {
  int fds[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) != 0) return fail_errno("socketpair");
  return FdPair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Status set_nonblocking(int fd, bool on) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return fail_errno("fcntl F_GETFL");
  if (::fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) < 0)
    return fail_errno("fcntl F_SETFL");
  return {};
}

Status write_all(int fd, const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = retry_eintr([&] { return ::write(fd, next, size); });
    if (written < 0 && errno == EAGAIN) {
      pollfd writable{fd, POLLOUT, 0};
      if (retry_eintr([&] { return ::poll(&writable, 1, -1); }) < 0) return fail_errno("poll");
      continue;
    }
    if (written < 0) return fail_errno("write");
    next += written;
    size -= static_cast<std::size_t>(written);
  }
  return {};
}

Result<std::string> read_file(const std::string& path, std::size_t max_size) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno("open " + path);
  std::string text;
  // Files of /proc and /sys have size 0, although they have contents.
  struct stat status {};
  if (::fstat(fd.get(), &status) == 0 && status.st_size > 0)
    text.reserve(std::min(static_cast<std::size_t>(status.st_size), max_size));
  char buffer[16384];
  for (;;) {
    const ssize_t got = retry_eintr([&] { return ::read(fd.get(), buffer, sizeof buffer); });
    if (got < 0) return fail_errno("read " + path);
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > max_size) {
      return fail(ErrorCode::kInvalidArgument,
                  path + " is longer than " + std::to_string(max_size) + " bytes");
    }
  }
}

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

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Result<MappedMemory> MappedMemory::map_shared(int fd, std::size_t size) {
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return fail_errno("mmap of " + std::to_string(size) + " bytes");
  return MappedMemory(static_cast<std::byte*>(data), size);
}

}  // namespace ddl
