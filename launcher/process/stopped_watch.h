// Notices that a process of this host, without which another cannot do, stays stopped.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "base/fd.h"

namespace ddl::launcher {

/// Whom a process cannot do without, it looks at again and again: somebody who is stopped answers nobody, and the kernel
/// tells nobody but the parent. Looks, not time, are counted, so that a machine that stood still makes nobody stopped.
class StoppedWatch {
 public:
  static constexpr auto kPeriod = std::chrono::milliseconds(2000);
  static constexpr auto kPeriodWhileStopped = std::chrono::milliseconds(800);
  static constexpr int kLooks = 2;

  /// looks: so many in a row at which the process was stopped are a stop for good. The process must be there.
  explicit StoppedWatch(pid_t pid, int looks = kLooks);
  /// One look: true if the process was stopped at this and the ones before it.
  bool is_stopped_for_good();
  bool was_stopped() const { return stopped_looks_ > 0; }  ///< at the last look
  /// Until the next look is to be taken.
  std::chrono::milliseconds pause() const { return was_stopped() ? kPeriodWhileStopped : kPeriod; }

 private:
  int looks_;
  UniqueFd stat_;  // its own, also when another process gets its number
  int stopped_looks_ = 0;
};

}  // namespace ddl::launcher
