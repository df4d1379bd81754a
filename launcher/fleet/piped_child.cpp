#include "launcher/fleet/piped_child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>
#include <vector>

#include "base/process.h"
#include "base/text.h"
#include "launcher/output/printable_text.h"

namespace ddl::launcher {
Result<PipedChild> PipedChild::start(const std::vector<std::string>& words,
                                     const std::optional<Environment>& environment, Streams& streams) {
  auto in = make_pipe();
  if (!in) return fail(in.error());
  auto out = make_pipe();
  if (!out) return fail(out.error());
  auto err = make_pipe();
  if (!err) return fail(err.error());
  std::optional<std::vector<std::string>> entries;
  if (environment) entries = environment_entries(*environment);
  const auto pid = spawn(words, {in->first.get(), out->second.get(), err->second.get()}, entries);
  if (!pid) return fail(pid.error());
  streams = {std::move(out->first), std::move(in->second), std::move(err->first)};
  return PipedChild(*pid);
}

PipedChild::PipedChild(PipedChild&& other) noexcept
    : pid_(other.pid_), status_(other.status_), ended_(std::exchange(other.ended_, true)) {}

bool PipedChild::wait(Deadline deadline) {
  if (ended_) return true;
  if (!wait_for_end(pid_, deadline)) return false;
  ended_ = retry_eintr([&] { return ::waitpid(pid_, &status_, WNOHANG); }) == pid_;
  return ended_;
}

void PipedChild::end(Deadline deadline) {
  if (wait(deadline)) return;
  ::kill(-pid_, SIGKILL);  // its group: with ssh's ProxyCommand there is more than one
  retry_eintr([&] { return ::waitpid(pid_, &status_, 0); });
  ended_ = true;
}

namespace {

constexpr std::size_t kMostText = std::size_t{8} << 10;

}  // namespace

void StreamTail::begin(EventLoop& loop, std::function<void()> on_end) {
  if (!stream_) return;
  on_end_ = std::move(on_end);
  (void)set_nonblocking(stream_.get(), true);
  watch_ = loop.watch(stream_.get(), [this] {
    catch_up();
    if (!stream_ && on_end_) std::exchange(on_end_, nullptr)();
  });
}

void StreamTail::catch_up() {
  std::array<char, 4096> buffer;
  while (stream_) {
    const ssize_t got = retry_eintr([&] { return ::read(stream_.get(), buffer.data(), buffer.size()); });
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      watch_.reset();
      stream_.reset();
      return;
    }
    text_.append(buffer.data(), static_cast<std::size_t>(got));
    if (text_.size() > kMostText) text_.erase(0, text_.size() - kMostText);
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
  constexpr std::size_t kMostLines = 3;
  constexpr std::size_t kLongest = 300;
  std::vector<std::string> lines;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (is_routine(line)) continue;
    line = line.substr(0, kLongest);
    if (line.size() == kLongest) line.remove_suffix(incomplete_utf8_tail(line));
    lines.push_back(printable_line(line));  // no escape sequences from afar
  }
  if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - kMostLines);
  return join(lines, " / ");
}

}  // namespace ddl::launcher
