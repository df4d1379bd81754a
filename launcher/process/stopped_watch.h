// Notices that a process of this host, without which another cannot do, stays stopped.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace ddl::launcher {

/// Whom a process cannot do without, it looks at once a period: somebody who is stopped answers nobody, and the kernel
/// tells nobody but the parent. Looks, not time, are counted, so that a machine that stood still makes nobody stopped.
class StoppedWatch {
 public:
  static constexpr auto kPeriod = std::chrono::milliseconds(800);
  static constexpr int kLooks = 2;

  explicit StoppedWatch(pid_t pid) : pid_(pid) {}
  /// To be called once a period: true if the process was stopped at each of the last kLooks looks.
  bool is_stopped_for_good();

 private:
  pid_t pid_;
  int stopped_looks_ = 0;
};

}  // namespace ddl::launcher
