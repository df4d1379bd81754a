// Says "still here" on a connection, and notices when the other side no longer does. While this machine has far more to
// run than CPUs, silence is not counted.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

// Whether this machine has far more to run than CPUs to run it on.

/// The number of threads that run or wait for a CPU, from the text of /proc/loadavg (proc(5)). Pure.
std::optional<int> parse_runnable(std::string_view loadavg);

/// True while so many threads wait for each CPU that a process may not run for seconds although nothing is wrong with
/// it. False where /proc does not tell.
bool is_machine_overloaded();

// Says "still here" on a connection, and notices when the other side no longer does.

/// How often a word is said, and how many periods without one are a death.
struct HeartbeatPace {
  std::chrono::milliseconds period;
  int limit;
};
/// Between hosts a packet may be lost and sent again, several times over in three seconds; what is told after that leaves
/// a second to end the job within five.
inline constexpr HeartbeatPace kRemotePace{std::chrono::milliseconds(800), 4};
/// On one host no word is lost. The kernel tells of a death, and a look at the other's state of a stop (StoppedWatch):
/// what is left for the heartbeat is a process that lives and hangs.
inline constexpr HeartbeatPace kLocalPace{std::chrono::seconds(20), 1};

/// "3.2 s": how long a silence is a death, for a sentence.
std::string silence_text(HeartbeatPace pace);

/// One side of one connection. Lives on the loop's thread, which its handlers run on.
///
/// Time is counted in ticks of its own timer, each of which may come late: a process that could not run itself, because
/// the machine was busy or asleep, does not take that for the other side's silence. Nor do ticks count while this machine
/// is overloaded: what carries the other side's words here may not get a CPU.
class Heartbeat {
 public:
  struct Handlers {
    std::function<void()> say;         ///< once a period
    std::function<void()> on_silence;  ///< nothing was heard for the limit; called once, and this has stopped
  };
  /// Silence is noticed between limit and limit + 1 periods after the last word.
  Heartbeat(EventLoop& loop, HeartbeatPace pace, Handlers handlers);

  void start();
  void stop() { timer_.cancel(); }
  /// Anything arrived.
  void heard() {
    quiet_ticks_ = 0;
    excused_ = false;
  }
  /// The other side has said that it will be silent; until heard() that means nothing.
  void excuse() { excused_ = true; }
  bool is_excused() const { return excused_; }

 private:
  void on_tick();
  bool counts();

  EventLoop& loop_;
  HeartbeatPace pace_;
  Handlers handlers_;
  EventLoop::Timer timer_;
  int quiet_ticks_ = 0;
  bool excused_ = false;
};

}  // namespace ddl::launcher
