// Whether the program waits for each tensor as soon as it has submitted it, as if the calls were blocking.
//
// Then the waiting thread makes the tensor's call itself. To wake the engine's own thread as well would cost ten times
// as much as a small sum: it takes the CPU of the waiting one, or a sleeping CPU. So that thread is not woken while the
// use is blocking. It looks once a millisecond instead, and the use is no longer taken to be blocking if nothing has
// been submitted meanwhile, which also means that a tensor may be open for which nobody waits. So an idle engine still
// sleeps, and a program that changes its ways loses two milliseconds once.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/deadline.h"

namespace ddl::runtime {

/// Not thread-safe.
class BlockingUse {
 public:
  /// Between two looks of the engine's thread.
  static constexpr std::chrono::milliseconds kLook{1};

  bool is_there() const { return times_ == kTimes; }
  /// Returns whether it has been there.
  bool end() { return std::exchange(times_, 0) == kTimes; }

  /// is_alone: no other tensor is open. Returns whether this ends it.
  bool submitted(bool is_alone) {
    ++submissions_;
    return !is_alone && end();
  }
  /// The number of times that something has been submitted.
  std::uint64_t submissions() const { return submissions_; }

  /// The program waits for a tensor that it has submitted at this time. Returns whether that has made it blocking.
  bool waited(Deadline::Clock::time_point submitted) {
    if (Deadline::Clock::now() - submitted > kAtOnce) {
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
  std::uint64_t submissions_ = 0;
};

}  // namespace ddl::runtime
