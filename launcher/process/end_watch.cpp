#include "launcher/process/end_watch.h"

#include <chrono>
#include <utility>

#include "base/process.h"

namespace ddl::launcher {

bool is_alive(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat && stat->is_alive();
}

EndWatch::EndWatch(EventLoop& loop, pid_t pid, std::function<void()> on_end)
    : loop_(loop), pid_(pid), on_end_(std::move(on_end)) {
  if (const auto stat = read_process_stat(pid)) start_time_ = stat->start_time;
  if (auto pidfd = open_pidfd(pid)) {
    pidfd_ = *std::move(pidfd);
    watch_ = loop_.watch(pidfd_.get(), [this] { end(); });
  }
  look();
}

void EndWatch::look() {
  constexpr std::chrono::milliseconds kPeriod{500};
  const auto stat = read_process_stat(pid_);
  if (!stat || !stat->is_alive() || stat->start_time != start_time_) return end();
  if (!pidfd_) timer_ = loop_.after(kPeriod, [this] { look(); });
}

void EndWatch::end() {
  watch_.reset();
  // Not from the constructor.
  timer_ = loop_.after(std::chrono::seconds(0), std::move(on_end_));
}

}  // namespace ddl::launcher
