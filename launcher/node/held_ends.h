// Ends of ranks by SIGTERM in a job of a scheduler, which are held back for a moment: a scheduler sends
// SIGTERM to all processes of a job that it ends, in any order. The agent's own SIGTERM explains the ends of its
// ranks, and must be reported before them.
#pragma once

#include <functional>
#include <vector>

#include "launcher/loop/event_loop.h"
#include "launcher/node/rank_process.h"
#include "launcher/protocol/spawner_messages.h"

namespace ddl::launcher {

/// Lives on the loop's thread.
class HeldEnds {
 public:
  using Report = std::function<void(const message::ChildEnded&)>;
  /// in_scheduler_job: otherwise no end is held.
  HeldEnds(EventLoop& loop, bool in_scheduler_job, Report report)
      : loop_(loop), may_hold_(in_scheduler_job), report_(std::move(report)) {}

  /// Reports it, at once unless it may be the scheduler's doing. ending: what the agent has done so far.
  void take(const message::ChildEnded& end, const TerminationState& ending);
  /// The agent's own SIGTERM has been reported: nothing is held any more.
  void agent_was_terminated();
  /// Calls then when nothing is held.
  void after_all(std::function<void()> then);

 private:
  void release();

  EventLoop& loop_;
  bool may_hold_;
  Report report_;
  std::vector<message::ChildEnded> held_;
  std::function<void()> then_;
  EventLoop::Timer timer_;
};

}  // namespace ddl::launcher
