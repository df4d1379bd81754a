#include "launcher/loop/event_loop.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <asio/error.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <csignal>
#include <optional>

#include "base/error.h"
#include "base/fd.h"

namespace ddl::launcher {

namespace {

/// Blocks signals, and reads those that come. Unlike one that a handler has seen, a signal that nobody has read yet is
/// not lost with the loop.
class SignalReader {
 public:
  explicit SignalReader(const std::vector<int>& signals) {
    ::sigemptyset(&watched_);
    for (const int signal : signals) ::sigaddset(&watched_, signal);
    sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &watched_, &before);
    blocked_here_ = watched_;
    for (const int signal : signals) {
      if (::sigismember(&before, signal) == 1) ::sigdelset(&blocked_here_, signal);
    }
    fd_.reset(::signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK));
    DDL_CHECK(fd_, "signalfd");
  }
  ~SignalReader() {
    ::signalfd(fd_.get(), &blocked_here_, 0);
    while (read() != 0) {
    }
    ::pthread_sigmask(SIG_UNBLOCK, &blocked_here_, nullptr);
  }
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  int fd() const { return fd_.get(); }
  /// The next one; 0: there is none.
  int read() const {
    signalfd_siginfo info{};
    const ssize_t count = retry_eintr([&] { return ::read(fd_.get(), &info, sizeof info); });
    return count == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t watched_{};
  sigset_t blocked_here_{};
  UniqueFd fd_;
};

}  // namespace

struct EventLoop::Impl {
  // One thread runs it; post() still locks (concurrency hint UNSAFE_IO would not).
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::optional<SignalReader> signals;
  FdWatch signal_watch;
};

struct EventLoop::FdWatch::State : std::enable_shared_from_this<State> {
  struct Side {
    Handler handler;
    asio::posix::stream_descriptor::wait_type type;
    bool wanted = false;
    bool armed = false;
  };

  State(asio::io_context& context, int fd)
      : descriptor(context, fd), flags(::fcntl(fd, F_GETFL)), keep_blocking((flags & O_NONBLOCK) == 0) {}

  // A wait is armed at most once a side; the handler may end the watch, so the state is kept alive by the wait.
  void arm(Side& side) {
    if (!alive || !side.wanted || side.armed) return;
    side.armed = true;
    descriptor.async_wait(side.type, [self = shared_from_this(), &side](const asio::error_code& error) {
      side.armed = false;
      // What epoll cannot watch (regular files, /dev/null) is always ready.
      if (!self->alive || (error && error != asio::error::operation_not_supported)) return;
      if (side.wanted) side.handler();
      self->arm(side);
    });
    // Asio makes a descriptor non-blocking at its first wait. This one is borrowed, and other processes may share
    // what it leads to (a terminal with the shell), so its mode is put back at once; asio does not look again.
    if (std::exchange(keep_blocking, false)) ::fcntl(descriptor.native_handle(), F_SETFL, flags);
  }

  void end() {
    if (!alive) return;
    alive = false;
    descriptor.release();  // cancels the waits and leaves the borrowed descriptor open
  }

  asio::posix::stream_descriptor descriptor;
  int flags;
  bool keep_blocking;
  bool alive = true;
  Side read{nullptr, asio::posix::stream_descriptor::wait_read};
  Side write{nullptr, asio::posix::stream_descriptor::wait_write};
};

EventLoop::FdWatch::FdWatch() = default;
EventLoop::FdWatch::FdWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}
EventLoop::FdWatch::~FdWatch() { reset(); }
EventLoop::FdWatch::FdWatch(FdWatch&&) noexcept = default;
EventLoop::FdWatch& EventLoop::FdWatch::operator=(FdWatch&& other) noexcept {
  if (this != &other) {
    reset();
    state_ = std::move(other.state_);
  }
  return *this;
}

void EventLoop::FdWatch::want_read(bool wanted) {
  if (!state_) return;
  state_->read.wanted = wanted;
  state_->arm(state_->read);
}

void EventLoop::FdWatch::want_write(bool wanted) {
  if (!state_) return;
  state_->write.wanted = wanted;
  state_->arm(state_->write);
}

void EventLoop::FdWatch::reset() {
  if (state_) std::exchange(state_, nullptr)->end();
}

struct EventLoop::Timer::State {
  explicit State(asio::io_context& context) : timer(context) {}
  asio::steady_timer timer;
  bool pending = true;
};

EventLoop::Timer::Timer() = default;
EventLoop::Timer::Timer(std::shared_ptr<State> state) : state_(std::move(state)) {}
EventLoop::Timer::~Timer() { cancel(); }
EventLoop::Timer::Timer(Timer&&) noexcept = default;
EventLoop::Timer& EventLoop::Timer::operator=(Timer&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

void EventLoop::Timer::cancel() {
  if (!state_) return;
  state_->pending = false;
  state_->timer.cancel();
  state_.reset();
}

bool EventLoop::Timer::is_pending() const { return state_ && state_->pending; }

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}
EventLoop::~EventLoop() = default;

EventLoop::FdWatch EventLoop::watch(int fd, Handler on_readable, Handler on_writable) {
  auto state = std::make_shared<FdWatch::State>(impl_->context, fd);
  state->read.handler = std::move(on_readable);
  state->write.handler = std::move(on_writable);
  state->read.wanted = state->read.handler != nullptr;
  state->arm(state->read);
  return FdWatch(std::move(state));
}

EventLoop::Timer EventLoop::after(std::chrono::steady_clock::duration delay, Handler handler) {
  auto state = std::make_shared<Timer::State>(impl_->context);
  state->timer.expires_after(delay);
  state->timer.async_wait([state, handler = std::move(handler)](const asio::error_code& error) {
    if (error || !state->pending) return;
    state->pending = false;
    handler();
  });
  return Timer(std::move(state));
}

void EventLoop::watch_signals(const std::vector<int>& signals, std::function<void(int)> handler) {
  impl_->signals.emplace(signals);
  impl_->signal_watch = watch(impl_->signals->fd(), [this, handler = std::move(handler)] {
    if (const int signal = impl_->signals->read(); signal != 0) handler(signal);
  });
}

void EventLoop::post(Handler handler) { asio::post(impl_->context, std::move(handler)); }
void EventLoop::run() {
  impl_->context.run();
  impl_->context.restart();
}
void EventLoop::stop() { impl_->context.stop(); }

}  // namespace ddl::launcher
