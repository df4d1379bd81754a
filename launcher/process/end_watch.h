// Notices that a process of this host has ended which is no child of this one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "base/fd.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// Whether there is such a process on this host, and it has not ended.
bool is_alive(pid_t pid);

/// By a pidfd, or where the kernel or a seccomp filter refuses one, by looking twice a second. One thread.
class EndWatch {
 public:
  /// on_end: called once, from the loop, also if there is no such process. It may destroy this.
  EndWatch(EventLoop& loop, pid_t pid, std::function<void()> on_end);
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

 private:
  void look();
  void end();

  EventLoop& loop_;
  pid_t pid_;
  std::function<void()> on_end_;
  std::uint64_t start_time_ = 0;  ///< of the process, which another one with its number does not have
  UniqueFd pidfd_;
  EventLoop::FdWatch watch_;
  EventLoop::Timer timer_;
};

}  // namespace ddl::launcher
