#include "base/unique_fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

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
  // What /proc and /sys make up as it is read has size 0.
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

}  // namespace ddl
