#include "launcher/fleet/stream_tail.h"

#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "base/text.h"

namespace ddl::launcher {

namespace {

constexpr std::size_t kMaxText = std::size_t{8} << 10;

}  // namespace

void StreamTail::begin(EventLoop& loop, std::function<void()> on_end) {
  if (!stream_) return;
  on_end_ = std::move(on_end);
  (void)set_nonblocking(stream_.get(), true);
  watch_ = loop.watch(stream_.get(), [this] {
    read_available();
    if (!stream_ && on_end_) std::exchange(on_end_, nullptr)();
  });
}

void StreamTail::read_available() {
  std::array<char, 4096> buffer;
  while (stream_) {
    const ssize_t got = retry_eintr([&] { return ::read(stream_.get(), buffer.data(), buffer.size()); });
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      watch_.reset();
      stream_.reset();
      return;
    }
    text_.append(buffer.data(), got);
    if (text_.size() > kMaxText) text_.erase(0, text_.size() - kMaxText);
  }
}

void StreamTail::stop() {
  on_end_ = nullptr;
  watch_.reset();
}

namespace {

bool is_routine(std::string_view line) {
  return line.empty() || line.starts_with("Warning: Permanently added") || line.starts_with("@@@") ||
         line.starts_with("debug1:") ||
         line.starts_with("** WARNING: connection is not using a post-quantum");
}

}  // namespace

std::string last_error_lines(std::string_view text) {
  constexpr std::size_t kMaxLines = 3;
  constexpr std::size_t kMaxLineLength = 300;
  std::vector<std::string> lines;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (is_routine(line)) continue;
    line = line.substr(0, kMaxLineLength);
    if (line.size() == kMaxLineLength) line.remove_suffix(incomplete_utf8_tail(line));
    lines.push_back(printable_line(line));  // escape sequences from another host must not reach the terminal
  }
  if (lines.size() > kMaxLines) lines.erase(lines.begin(), lines.end() - kMaxLines);
  return join(lines, " / ");
}

}  // namespace ddl::launcher
