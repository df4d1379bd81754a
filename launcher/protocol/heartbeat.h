// Heartbeats on a link: sends one every period, and notices when none arrives. While this machine has far
// more threads to run than CPUs, silence is not counted.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// The number of threads that run or wait for a CPU, from the text of /proc/loadavg (proc(5)). Pure.
std::optional<int> parse_runnable(std::string_view loadavg);

/// True while so many threads wait for each CPU that a process may not run for seconds although nothing is
/// wrong with it. False if /proc cannot be read.
bool is_machine_overloaded();

/// How often a heartbeat is sent, and after how many periods without one the other side is taken for dead. limit is at
/// least 2: both sides count by timers of their own, so that now and then a whole period has no heartbeat, and the next
/// has two.
struct HeartbeatPace {
  std::chrono::milliseconds period;
  int limit;
};
/// Between hosts a packet may be lost and sent again, several times in three seconds. After that one second
/// is left to end the job within five.
inline constexpr HeartbeatPace kRemotePace{std::chrono::milliseconds(800), 4};
/// On one host no heartbeat is lost. The kernel reports a death, and StoppedWatch a stop: the heartbeat is
/// for a process that lives and hangs.
inline constexpr HeartbeatPace kLocalPace{std::chrono::seconds(20), 2};
static_assert(kRemotePace.limit >= 2 && kLocalPace.limit >= 2);

/// "3.2 s": the silence after which the other side is taken for dead, for a sentence.
std::string silence_text(HeartbeatPace pace);

/// One side of one link. Lives on the loop's thread, which its handlers run on.
///
/// Time is counted in ticks of its own timer, each of which may come late: a process that could not run
/// itself, because the machine was busy or asleep, does not take that for the other side's silence. Nor do
/// ticks count while this machine is overloaded: the processes that carry the heartbeats here (ssh) may not
/// get a CPU.
class Heartbeat {
 public:
  struct Handlers {
    std::function<void()> send;  ///< sends a heartbeat; once a period
    std::function<void()>
        on_silence;  ///< nothing has arrived for the limit; called once, and this has stopped
  };
  /// Silence is noticed between limit and limit + 1 periods after the last heard(). is_overloaded: for tests, which do not
  /// choose the load of their machine.
  Heartbeat(EventLoop& loop, HeartbeatPace pace, Handlers handlers,
            std::function<bool()> is_overloaded = is_machine_overloaded);

  void start();
  void stop() { timer_.cancel(); }
  /// To be called when anything has arrived.
  void heard() {
    quiet_ticks_ = 0;
    excused_ = false;
  }
  /// The other side has announced that it will be silent (^Z): silence does not count until heard().
  void excuse() { excused_ = true; }
  bool is_excused() const { return excused_; }

 private:
  void on_tick();
  bool counts();

  EventLoop& loop_;
  HeartbeatPace pace_;
  Handlers handlers_;
  std::function<bool()> is_overloaded_;
  EventLoop::Timer timer_;
  int quiet_ticks_ = 0;
  bool excused_ = false;
};

}  // namespace ddl::launcher
