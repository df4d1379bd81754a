#include "launcher/process/terminator.h"

#include <algorithm>
#include <csignal>

namespace ddl::launcher {

void Terminator::begin(int signal, double grace_seconds) {
  if (done_ || killed_) return;
  const bool asks = !has_begun() || (asked_ == SIGINT && signal != SIGINT);
  const auto now = std::chrono::steady_clock::now();
  const auto grace = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(signal == SIGKILL ? 0.0 : grace_seconds));
  if (!asks && *kill_at_ <= now + grace) return;
  kill_at_ = std::min(kill_at_.value_or(now + grace), now + grace);
  if (grace.count() <= 0) return kill_now();
  asks ? ask(signal) : wait();
}

void Terminator::ask(int signal) {
  asked_ = signal;
  actions_.ask(signal);
  wait();
}

void Terminator::wait() {
  const auto left = *kill_at_ - std::chrono::steady_clock::now();
  timer_ = asked_ == SIGINT ? loop_.after(left / 2, [this] { ask(SIGTERM); })
                            : loop_.after(left, [this] { kill_now(); });
}

void Terminator::kill_now() {
  if (done_ || killed_) return;
  killed_ = true;
  timer_.cancel();
  actions_.kill();
}

}  // namespace ddl::launcher
