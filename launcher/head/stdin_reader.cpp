#include "launcher/head/stdin_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace ddl::launcher {
namespace {

// While in the background: a shell's fg sends SIGCONT only to a job that was stopped, and the kernel tells nobody that
// the terminal has another foreground group.
constexpr auto kLookAgain = std::chrono::milliseconds(500);

}  // namespace

StdinReader::StdinReader(EventLoop& loop, int fd, Handlers handlers)
    : loop_(loop), fd_(fd), handlers_(std::move(handlers)), is_terminal_(::isatty(fd) == 1) {
  watch_ = loop_.watch(fd_, [this] { on_readable(); });
  watch_as_allowed();
}

bool StdinReader::is_in_background() const { return is_terminal_ && ::tcgetpgrp(fd_) != ::getpgrp(); }

void StdinReader::watch_as_allowed() {
  look_again_.cancel();
  if (ended_) return;
  const bool in_background = is_in_background();
  watch_.want_read(!in_background && under_way_ < kWindow);
  if (in_background) look_again_ = loop_.after(kLookAgain, [this] { watch_as_allowed(); });
}

void StdinReader::on_readable() {
  if (is_in_background()) return watch_as_allowed();
  // The descriptor may be blocking, and another reader of it may have been faster.
  pollfd entry{fd_, POLLIN, 0};
  if (::poll(&entry, 1, 0) == 0) return;
  std::array<char, 65536> buffer;
  const auto limit = std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(kWindow - under_way_));
  const ssize_t got = retry_eintr([&] { return ::read(fd_, buffer.data(), limit); });
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
  // EIO: moved to the background between the check and the read.
  if (got < 0 && errno == EIO && is_in_background()) return watch_as_allowed();
  if (got <= 0) {
    stop();
    return handlers_.on_end();
  }
  under_way_ += got;
  watch_as_allowed();
  handlers_.on_bytes(std::string(buffer.data(), static_cast<std::size_t>(got)));
}

void StdinReader::refund(std::int64_t bytes) {
  under_way_ = std::max<std::int64_t>(0, under_way_ - bytes);
  watch_as_allowed();
}

void StdinReader::recheck_terminal() { watch_as_allowed(); }

}  // namespace ddl::launcher
