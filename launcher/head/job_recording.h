// What the head does with what the ranks of its job have recorded: the timeline, and the last events of a failed job.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/head/event_collector.h"
#include "launcher/head/timeline_recorder.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"
#include "launcher/job/rank_history.h"
#include "launcher/protocol/control_messages.h"

namespace ddl::launcher {

/// One thread.
class JobRecording {
 public:
  struct Actions {
    std::function<void(const message::AskEvents&)> ask;          ///< the rank's agent
    std::function<void(const message::RecordTimeline&)> record;  ///< all agents
    std::function<const JobReport&()> report;                    ///< so far
    std::function<void(const std::string&)> note;
  };
  /// ranks: of the job.
  JobRecording(EventLoop& loop, std::vector<TimelineRank> ranks, Actions actions);

  /// A timeline is recorded from the start, and written to this file at the end of the job. The file is checked now: a
  /// job should not end with the news that it cannot be written.
  Status plan_timeline(const std::string& path, std::uint64_t max_bytes);
  /// Records a timeline from now on, or writes what has been recorded while the job goes on. Returns the path, at once.
  /// A file that the request does not name is in the job's working directory.
  Result<std::string> change(const message::ChangeTimeline& request, const JobSpec& spec);
  /// Writes the timeline, if one is recorded, and calls done() then. The user is told where it is, or why it is not.
  /// True if one is recorded.
  bool write_timeline(std::function<void()> done);
  /// The job ends: says so if a timeline that was recorded will not be written.
  void give_up();

  /// The job has failed: asks what the ranks did, before they are ended. Only the first time.
  void ask_for_histories();

  void on_events(const message::Events& piece);
  /// The agent of this node will not answer any more.
  void on_lost(int node);

  /// Why a timeline that was recorded could not be written; "".
  const std::string& lost() const { return not_written_; }
  /// Adds what has been found out.
  void add_to(JobReport& report);

 private:
  bool ask(const message::AskEvents& question);
  std::pair<std::int64_t, std::string> fate_of(int rank) const;
  void on_written(const std::string& failure);

  EventLoop& loop_;
  std::vector<TimelineRank> ranks_;
  Actions actions_;
  std::set<int> lost_;  ///< nodes
  std::int64_t next_id_;
  std::optional<EventCollector> history_collector_;
  std::vector<RankHistory> histories_;
  std::unique_ptr<TimelineRecorder> timeline_;
  std::string path_, written_;  ///< of the timeline that is recorded, and of the last one that was written
  std::string not_written_;     ///< why a timeline could not be written
  std::uint64_t max_bytes_ = 0;
  bool is_writing_ = false;
  std::vector<std::function<void()>> done_;
  EventLoop::Timer next_;
};

}  // namespace ddl::launcher
