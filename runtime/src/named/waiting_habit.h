// Whether the program waits for each tensor as soon as it has handed it over.
//
// Then the waiting thread carries the tensor out itself. To wake the engine's own thread as well would cost ten times
// as much as a small sum: it takes the CPU of the waiting one, or a sleeping CPU. So while the habit lasts, that thread
// is not woken. It looks once a millisecond instead, and the habit ends if nothing has been handed over meanwhile,
// which also means that a tensor may be open for which nobody waits. So an idle engine still sleeps, and a program that
// changes its ways loses two milliseconds once.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/deadline.h"

namespace ddl::runtime {

/// Not thread-safe.
class WaitingHabit {
 public:
  /// Between two looks of the engine's thread.
  static constexpr std::chrono::milliseconds kLook{1};

  bool is_there() const { return times_ == kTimes; }
  /// Returns whether it has been there.
  bool end() {
    const bool was_there = is_there();
    times_ = 0;
    return was_there;
  }

  /// is_alone: no other tensor is open. Returns whether this ends the habit.
  bool handed_over(bool is_alone) {
    ++tensors_;
    return !is_alone && end();
  }
  /// The number of times that something has been handed over.
  std::uint64_t tensors() const { return tensors_; }

  /// The program waits for a tensor that it has handed over at this time. Returns whether it has just become a habit.
  bool waited(Deadline::Clock::time_point handed_over) {
    if (Deadline::Clock::now() - handed_over > kAtOnce) {
      times_ = 0;
      return false;
    }
    return !is_there() && ++times_ == kTimes;
  }

 private:
  /// Less than it takes to wake a thread and to let it make a call: there is nothing to gain in such a time.
  static constexpr std::chrono::microseconds kAtOnce{50};
  static constexpr int kTimes = 8;

  int times_ = 0;  ///< in a row, at most kTimes
  std::uint64_t tensors_ = 0;
};

}  // namespace ddl::runtime
