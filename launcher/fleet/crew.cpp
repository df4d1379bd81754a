#include "launcher/fleet/crew.h"

#include <unistd.h>

#include <array>
#include <cctype>
#include <span>
#include <utility>

#include "base/text.h"
#include "launcher/message/codec.h"
#include "net/job_key.h"

namespace ddl::launcher {

namespace {

constexpr std::size_t kMostText = std::size_t{8} << 10;

/// False at the end.
bool read_text(int fd, std::string& text) {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = retry_eintr([&] { return ::read(fd, buffer.data(), buffer.size()); });
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostText) text.erase(0, text.size() - kMostText);
  }
}

}  // namespace

Crew::Crew(EventLoop& loop, StartedCrew started, std::function<void(StartFailure)> on_over)
    : started_(std::move(started)), on_over_(std::move(on_over)) {
  (void)set_nonblocking(started_.out.get(), true);
  (void)set_nonblocking(started_.errors.get(), true);
  out_watch_ = loop.watch(started_.out.get(), [this] { on_out(); });
  errors_watch_ = loop.watch(started_.errors.get(), [this] { on_errors(); });
}

void Crew::tell(const message::Join& join) {
  if (!started_.in) return;
  net::Frame frame = message::encode(join);
  std::string bytes;
  net::append_frame(bytes, frame.type, frame.payload);
  // Far less than a pipe holds.
  (void)write_all(started_.in.get(), bytes.data(), bytes.size());
  net::wipe(std::as_writable_bytes(std::span(bytes)));
  net::wipe(std::as_writable_bytes(std::span(frame.payload)));
  // It stays open: of a task that comes late srun may drop what it has for it when the input ends.
}

std::string Crew::said_by(const std::string& node) const {
  const std::string beginning = "ddlrun agent on " + node + ": ";
  std::string about_it;
  for (const std::string_view line : split(errors_text_, '\n')) {
    if (const std::size_t at = line.find(beginning); at != std::string_view::npos)
      return std::string(line.substr(at + beginning.size()));
    const std::size_t at = line.find(node);
    const bool is_name = at != std::string_view::npos &&
                         (at + node.size() == line.size() || std::isalnum(line[at + node.size()]) == 0);
    if (is_name && line.find("error") != std::string_view::npos) about_it = trim(line);
  }
  return about_it;
}

void Crew::on_errors() {
  if (!read_text(started_.errors.get(), errors_text_)) errors_watch_.reset();
}

void Crew::on_out() {
  if (read_text(started_.out.get(), noise_)) return;
  out_watch_.reset();
  (void)read_text(started_.errors.get(), errors_text_);
  errors_watch_.reset();
  if (on_over_) std::exchange(on_over_, nullptr)(started_.process->why_not_started(noise_, errors_text_));
}

void Crew::close() {
  on_over_ = nullptr;
  started_.in.reset();
  out_watch_.reset();
  errors_watch_.reset();
}

}  // namespace ddl::launcher
