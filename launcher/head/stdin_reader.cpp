#include "launcher/head/stdin_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace ddl::launcher {

StdinReader::StdinReader(EventLoop& loop, int fd, Handlers handlers)
    : loop_(loop), fd_(fd), handlers_(std::move(handlers)), is_terminal_(::isatty(fd) == 1) {
  watch_ = loop_.watch(fd_, [this] { on_readable(); });
  watch_.want_read(may_read());
}

bool StdinReader::may_read() const {
  if (ended_ || under_way_ >= kWindow) return false;
  return !is_terminal_ || ::tcgetpgrp(fd_) == ::getpgrp();
}

void StdinReader::on_readable() {
  if (!may_read()) return watch_.want_read(false);
  // The descriptor may be blocking, and another reader of it may have been faster.
  pollfd entry{fd_, POLLIN, 0};
  if (::poll(&entry, 1, 0) == 0) return;
  std::array<char, 65536> buffer;
  const auto limit = std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(kWindow - under_way_));
  const ssize_t got = retry_eintr([&] { return ::read(fd_, buffer.data(), limit); });
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
  // EIO: moved to the background between the check and the read; SIGCONT will tell when that changes.
  if (got < 0 && errno == EIO && is_terminal_ && ::tcgetpgrp(fd_) != ::getpgrp()) return watch_.want_read(false);
  if (got <= 0) {
    stop();
    return handlers_.on_end();
  }
  under_way_ += got;
  if (under_way_ >= kWindow) watch_.want_read(false);
  handlers_.on_bytes(std::string(buffer.data(), static_cast<std::size_t>(got)));
}

void StdinReader::refund(std::int64_t bytes) {
  under_way_ = std::max<std::int64_t>(0, under_way_ - bytes);
  watch_.want_read(may_read());
}

void StdinReader::recheck_terminal() { watch_.want_read(may_read()); }

}  // namespace ddl::launcher
