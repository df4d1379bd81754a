#include "launcher/protocol/link.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/bytes.h"
#include "base/deadline.h"
#include "base/fd.h"

namespace ddl::launcher {
namespace {

constexpr std::string_view kName = "ddlrun-agent ";
constexpr std::size_t kMaxVersion = 64;

}  // namespace

Result<std::string> make_nonce() {
  constexpr std::size_t kNonceBytes = 16;
  return random_hex(kNonceBytes);
}

std::string greeting(std::string_view version, std::string_view nonce) {
  return std::string(kName) + std::string(version) + " " + std::string(nonce) + "\n";
}

GreetingScanner::State GreetingScanner::take(std::string_view bytes) {
  // Only new bytes can complete the greeting, but it may have begun in earlier ones.
  const std::size_t longest = kName.size() + kMaxVersion + 2 + nonce_.size();
  const std::size_t from = seen_.size() - std::min(seen_.size(), longest);
  seen_ += bytes;
  const std::string ending = " " + nonce_ + "\n";
  for (std::size_t end = seen_.find(ending, from); end != std::string::npos;
       end = seen_.find(ending, end + 1)) {
    const std::size_t begin = seen_.rfind(kName, end);
    if (begin == std::string::npos || end - begin > kName.size() + kMaxVersion) continue;
    version_ = seen_.substr(begin + kName.size(), end - begin - kName.size());
    rest_ = seen_.substr(end + ending.size());
    seen_.resize(begin);
    return State::kFound;
  }
  return seen_.size() > kMaxNoise ? State::kTooMuchNoise : State::kLooking;
}

namespace {

// A host that is cut off takes no bytes: the last messages are not worth a longer wait.
constexpr auto kFlushDeadline = std::chrono::seconds(1);
constexpr std::size_t kCompactAbove = std::size_t{1} << 20;

class StreamLink : public Link {
 public:
  StreamLink(EventLoop& loop, UniqueFd read, UniqueFd write, std::string_view first_bytes,
             std::size_t max_payload)
      : loop_(loop), read_(std::move(read)), write_(std::move(write)), decoder_(max_payload) {
    decoder_.append(std::as_bytes(std::span(first_bytes)));
    (void)set_nonblocking(read_.get(), true);
    if (write_) (void)set_nonblocking(write_.get(), true);
  }

  void start(Handlers handlers) override {
    handlers_ = std::move(handlers);
    if (write_) {
      read_watch_ = loop_.watch(read_.get(), [this] { on_readable(); });
      write_watch_ = loop_.watch(write_.get(), nullptr, [this] { on_writable(); });
    } else {
      read_watch_ = loop_.watch(
          read_.get(), [this] { on_readable(); }, [this] { on_writable(); });
    }
    if (!queue_.empty()) on_writable();
    // Not from inside start(): handlers come from the loop.
    if (!decoder_.at_boundary()) first_frames_ = loop_.after({}, [this] { deliver_frames(); });
  }

  void send(std::uint16_t type, std::string_view payload) override {
    if (closed_ || write_failed_) return;
    const bool was_idle = queue_.empty();
    net::append_frame(queue_, type, payload);
    if (was_idle && handlers_.on_frame) on_writable();
  }

  std::size_t queued_bytes() const override { return queue_.size() - sent_; }

  void flush() override {
    const Deadline deadline = Deadline::after(kFlushDeadline);
    while (!closed_ && !queue_.empty() && !deadline.has_passed()) {
      pollfd entry{write_fd(), POLLOUT, 0};
      if (retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) <= 0) return;
      on_writable();
    }
  }

 private:
  int write_fd() const { return write_ ? write_.get() : read_.get(); }
  EventLoop::FdWatch& write_watch() { return write_ ? write_watch_ : read_watch_; }

  void on_readable() {
    std::array<std::byte, 65536> buffer;
    const ssize_t got = retry_eintr([&] { return ::read(read_.get(), buffer.data(), buffer.size()); });
    if (got < 0 && errno == EAGAIN) return;
    const int error = errno;
    // Bytes that came with the greeting may still be waiting: they were sent before the end.
    deliver_frames();
    if (closed_) return;
    if (got < 0) return close(errno_error("read", error).message());
    if (got == 0) {
      return close(decoder_.at_boundary() ? "closed by the other side"
                                          : "closed by the other side in mid-message");
    }
    decoder_.append(std::span(buffer).first(got));
    deliver_frames();
  }

  void deliver_frames() {
    while (!closed_) {
      auto frame = decoder_.next();
      if (!frame) return close(frame.error().message());
      if (!*frame) return;
      handlers_.on_frame(std::move(**frame));
    }
  }

  void on_writable() {
    while (sent_ < queue_.size()) {
      const ssize_t written =
          retry_eintr([&] { return ::write(write_fd(), queue_.data() + sent_, queue_.size() - sent_); });
      if (written < 0 && errno == EAGAIN) return write_watch().want_write(true);
      if (written < 0) {
        // Bytes that the other side sent before it closed may still be unread: let the reader find the end.
        queue_.clear();
        sent_ = 0;
        write_failed_ = true;
        return write_watch().want_write(false);
      }
      sent_ += written;
      if (sent_ > kCompactAbove) {  // a busy queue may never be quite empty
        queue_.erase(0, sent_);
        sent_ = 0;
      }
    }
    queue_.clear();
    sent_ = 0;
    write_watch().want_write(false);
  }

  void close(const std::string& reason) {
    if (closed_) return;
    closed_ = true;
    read_watch_.reset();
    write_watch_.reset();
    // The handler may destroy this link: it is the last thing done here, and from a copy.
    const auto on_closed = handlers_.on_closed;
    on_closed(reason);
  }

  EventLoop& loop_;
  UniqueFd read_;
  UniqueFd write_;
  Handlers handlers_;
  net::FrameDecoder decoder_;
  std::string queue_;
  std::size_t sent_ = 0;
  bool closed_ = false;
  bool write_failed_ = false;
  EventLoop::FdWatch read_watch_;
  EventLoop::FdWatch write_watch_;
  EventLoop::Timer first_frames_;
};

}  // namespace

std::unique_ptr<Link> make_stream_link(EventLoop& loop, UniqueFd read, UniqueFd write,
                                       std::string_view first_bytes, std::size_t max_payload) {
  return std::make_unique<StreamLink>(loop, std::move(read), std::move(write), first_bytes, max_payload);
}

}  // namespace ddl::launcher
