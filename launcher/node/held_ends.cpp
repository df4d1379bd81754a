#include "launcher/node/held_ends.h"

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <utility>

namespace ddl::launcher {
namespace {

// The agent gets its SIGTERM at most this long after a rank's death.
constexpr auto kOwnSignalDeadline = std::chrono::milliseconds(200);

}  // namespace

void HeldEnds::take(const message::ChildEnded& end, const TerminationState& ending) {
  const bool is_by_sigterm = WIFSIGNALED(end.wait_status) && WTERMSIG(end.wait_status) == SIGTERM;
  if (!may_hold_ || !is_by_sigterm || !ending.requested_signals.empty()) return report_(end);
  if (held_.empty()) timer_ = loop_.after(kOwnSignalDeadline, [this] { release(); });
  held_.push_back(end);
}

void HeldEnds::agent_was_terminated() {
  may_hold_ = false;
  release();
}

void HeldEnds::after_all(std::function<void()> then) {
  if (held_.empty()) return then();
  then_ = std::move(then);
}

void HeldEnds::release() {
  timer_.cancel();
  for (const message::ChildEnded& end : std::exchange(held_, {})) report_(end);
  if (const auto then = std::exchange(then_, nullptr)) then();
}

}  // namespace ddl::launcher
