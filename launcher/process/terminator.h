// TERM, grace, KILL: how processes are asked to end and are then killed. After ^C: INT, TERM after half of the grace,
// KILL.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// Drives one ending. Calls back on the loop's thread; does nothing more once all are reported gone.
class Terminator {
 public:
  struct Actions {
    std::function<void(int signal)> ask;  ///< send this signal to every process of the job
    std::function<void()> kill;           ///< SIGKILL to every process of the job
  };
  Terminator(EventLoop& loop, Actions actions) : loop_(loop), actions_(std::move(actions)) {}

  /// Asks with signal and kills after the grace. SIGINT is followed by SIGTERM after half of it. Called again it can
  /// only hasten: an earlier kill wins, and nothing is sent twice, but another signal than SIGINT follows that one at
  /// once. grace 0 or SIGKILL: kills now.
  void begin(int signal, double grace_seconds);
  void all_gone() {
    timer_.cancel();
    done_ = true;
  }
  bool has_begun() const { return kill_at_.has_value(); }

 private:
  void ask(int signal);
  /// For what comes next.
  void wait();
  void kill_now();

  EventLoop& loop_;
  Actions actions_;
  EventLoop::Timer timer_;
  std::optional<std::chrono::steady_clock::time_point> kill_at_;
  int asked_ = 0;  ///< with this signal, the last one
  bool killed_ = false;
  bool done_ = false;
};

}  // namespace ddl::launcher
