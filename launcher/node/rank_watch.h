// What the ranks of a node do while they run, as their agent sees it in their records and in the kernel: for the
// questions of the head, and for the warning about ranks that wait too long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "launcher/job/rank_activity.h"
#include "launcher/loop/event_loop.h"
#include "launcher/node/rank_records.h"
#include "launcher/node/recorded_events.h"
#include "launcher/node/stall_watch.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// One thread.
class RankWatch {
 public:
  /// usage: of this node, for those who ask for it.
  RankWatch(EventLoop& loop, std::function<void(const message::AgentToHead&)> report,
            std::function<NodeUsage()> usage)
      : loop_(loop), report_(std::move(report)), usage_(std::move(usage)) {}

  /// Makes records for the ranks of this node, before they start. If there is no memory for them, ranks run without.
  void prepare(const JobLaunch& job, const NodeLaunch& node);
  /// For a rank to inherit; null: ranks run without records.
  const RankRecords* records() const { return records_ ? &*records_ : nullptr; }
  /// The index of a rank in the records.
  std::size_t local_rank(int rank) const;

  void has_started(int rank, std::int64_t pid) { processes_[rank] = {pid}; }
  void has_ended(int rank);
  /// 0 until it was started.
  std::int64_t pid_of(int rank) const;
  /// Tells the ranks. False if none of them uses libddl.
  bool tell(const message::HostLost& lost) { return records_ && records_->tell(lost); }
  /// The ranks begin another generation, with the hosts that there are.
  void forget_lost() {
    if (records_) records_->forget_lost();
  }
  /// The rank whose end this rank has observed; -1: none is known.
  int gone_rank(int rank) const;
  /// What it has done by libddl so far.
  RankCalls calls(int rank) const;

  /// Begins to look for stalls; again after a pause, whose time does not count.
  void watch_for_stalls();
  void pause() { stall_timer_.cancel(); }
  bool watches() const { return stall_watch_.has_value(); }

  void on(const message::AskActivity& ask);
  void on(const message::AskEvents& ask);
  void on(const message::RecordTimeline& message);
  void on(const message::ElasticChange& change) {
    if (records_) records_->show_change(static_cast<contract::JobChange>(change.change));
  }

 private:
  struct Process {
    std::int64_t pid = 0;  ///< 0 until it was started
    bool ended = false;
    double cpu_seconds = -1;                    ///< at the time of a look; below 0: unknown
    StallWatch::Clock::time_point looked_at{};  ///< this time
    double cpu_share = -1;                      ///< between the last two of these looks
  };
  /// Sets its cpu_share.
  static void compare(Process& process, ProcessActivity& now);
  /// The memory of the ranks is read a few times in the time that a wait may last, and nobody else is disturbed.
  void look_for_stalls();
  /// Without records, only what the kernel knows of the processes.
  std::vector<RankActivity> activities();
  void report_activity(const message::AskActivity& ask, std::int64_t received_ns);

  EventLoop& loop_;
  std::function<void(const message::AgentToHead&)> report_;
  std::function<NodeUsage()> usage_;
  std::vector<int> ranks_;  ///< of this node
  StallWatch::Limits limits_;
  std::map<int, Process> processes_;
  std::map<int, RankCalls> told_calls_;  ///< by rank, in the last answer with counts
  std::optional<RankRecords> records_;
  std::optional<RecordedEvents> events_;  ///< of records_
  std::optional<StallWatch> stall_watch_;
  StallWatch::Clock::time_point watched_since_;  ///< with stall_watch_
  EventLoop::Timer stall_timer_;
  EventLoop::Timer activity_timer_;  ///< of the second look for an AskActivity
};

}  // namespace ddl::launcher
