#include "launcher/process/terminator.h"

#include <csignal>

namespace ddl::launcher {

void Terminator::begin(int signal, double grace_seconds) {
  if (done_ || killed_) return;
  const bool first = !has_begun();
  const auto now = std::chrono::steady_clock::now();
  const auto grace = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(signal == SIGKILL ? 0.0 : grace_seconds));
  if (!first && *kill_at_ <= now + grace) return;
  kill_at_ = now + grace;
  if (grace.count() <= 0) return kill_now();
  if (first) actions_.ask(signal);
  timer_ = loop_.after(grace, [this] { kill_now(); });
}

void Terminator::kill_now() {
  if (done_ || killed_) return;
  killed_ = true;
  timer_.cancel();
  actions_.kill();
}

}  // namespace ddl::launcher
