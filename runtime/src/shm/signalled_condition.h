// A condition variable of threads that the program's signals may wake.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/deadline.h"
#include "runtime/src/shm/flag_protocol.h"

namespace ddl::runtime {

/// A condition variable whose waits report signals, which those of the C++ library hide. It is used under the lock.
class SignalledCondition {
 public:
  /// Returns when it is notified, the deadline has passed, or for no reason. Whether a signal has ended it.
  bool wait(std::unique_lock<std::mutex>& lock, Deadline deadline) {
    const std::uint32_t seen = notifications_.load();
    FutexPlatform platform;
    ++sleepers_;
    lock.unlock();
    (void)platform.wait(notifications_, seen, deadline);
    lock.lock();
    --sleepers_;
    return platform.was_signalled;
  }
  template <class Done>
  void wait(std::unique_lock<std::mutex>& lock, Done done) {
    while (!done()) (void)wait(lock, Deadline::never());
  }
  void notify_all() {
    if (sleepers_ == 0) return;
    notifications_.fetch_add(1);
    FutexPlatform().wake_all(notifications_);
  }

 private:
  FutexPlatform::Word notifications_{0};
  int sleepers_ = 0;
};

}  // namespace ddl::runtime
