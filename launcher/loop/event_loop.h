// One thread that waits for descriptors, timers, signals and calls from other threads. Asio is inside and stays
// there.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace ddl::launcher {

/// Runs handlers one at a time on the thread that calls run(). Only post() may be called from other threads.
/// Every watch and timer is an object: destroying it ends it, also from inside its own handler. None may outlive the
/// loop.
class EventLoop {
 public:
  using Handler = std::function<void()>;

  /// Calls a handler again and again while a borrowed descriptor is readable or writable.
  class FdWatch {
   public:
    FdWatch();
    ~FdWatch();
    FdWatch(FdWatch&&) noexcept;
    FdWatch& operator=(FdWatch&&) noexcept;
    void want_read(bool wanted);
    void want_write(bool wanted);
    /// Ends the watch; must happen before the descriptor is closed.
    void reset();

   private:
    friend class EventLoop;
    struct State;
    explicit FdWatch(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
  };

  /// Calls a handler once, later.
  class Timer {
   public:
    Timer();
    ~Timer();
    Timer(Timer&&) noexcept;
    Timer& operator=(Timer&&) noexcept;
    void cancel();
    bool is_pending() const;

   private:
    friend class EventLoop;
    struct State;
    explicit Timer(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
  };

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Reading is wanted from the start if on_readable is given, writing only after want_write(true).
  /// The descriptor stays blocking or non-blocking, as it was.
  FdWatch watch(int fd, Handler on_readable, Handler on_writable = nullptr);
  Timer after(std::chrono::steady_clock::duration delay, Handler handler);
  /// Takes the signals over for this process until the loop is destroyed; one set per loop. To be called while the
  /// process has one thread. They are blocked meanwhile, also for threads that begin later. Signals that were blocked
  /// before stay pending if the loop ends before it has seen them; others that it has not seen are dropped then.
  void watch_signals(const std::vector<int>& signals, std::function<void(int)> handler);
  /// Thread-safe: runs handler on the loop's thread.
  void post(Handler handler);

  /// Returns after stop(); may be called again.
  void run();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ddl::launcher
