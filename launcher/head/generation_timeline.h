// Writes the timeline of an elastic job whose ranks go on when others fail: what all its processes have recorded, in one
// file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "launcher/job/job_report.h"
#include "launcher/protocol/event_messages.h"
#include "timeline/trace_file.h"

namespace ddl::launcher {

/// Each launch sends what its processes have recorded when it ends; the file is written at the end of the job. One thread.
class GenerationTimeline {
 public:
  /// Checks that the file can be written.
  static Result<GenerationTimeline> create(const std::string& path, std::uint64_t max_bytes);

  /// A process is started: its number in the job is one more than that of the one before.
  void add(int launch, int slot, const std::string& host);
  /// A generation begins, with these processes, by rank.
  void begin(const std::vector<int>& members);
  void on_events(int launch, const message::Events& piece);

  /// At the end of the job. fate_of: the pid of a process, and what has become of it, as of timeline::RankTrace. note: tells
  /// the user where the file is, what it lacks, or why there is none; the report has that, too, and a job whose timeline is
  /// lost has not succeeded. It takes a second for some hundred thousand events.
  void write(const std::function<std::pair<std::int64_t, std::string>(int member)>& fate_of,
             const std::function<void(const std::string&)>& note, JobReport& report);

 private:
  struct Process {
    std::string host;
    std::vector<int> ranks;  ///< that it has been, one after the other, each once in a row
    std::vector<int>
        last_generation;  ///< the last one with ranks on several hosts that it was in: members, by rank
    bool has_answered = false;
    timeline::RingSnapshot ring;
    std::int64_t read_at = 0;
  };
  explicit GenerationTimeline(timeline::TraceFile file, std::uint64_t max_bytes)
      : file_(std::move(file)), max_bytes_(max_bytes) {}
  /// Returns sentences about what is not in the file.
  Result<std::vector<std::string>> write_file(
      const std::function<std::pair<std::int64_t, std::string>(int member)>& fate_of);
  /// Of the processes that have ended first, so that no more is kept than what the file may have.
  void forget_oldest();
  std::vector<timeline::HostClock> clocks(const std::vector<std::string>& hosts) const;

  timeline::TraceFile file_;
  std::uint64_t max_bytes_;
  std::uint64_t kept_bytes_ = 0;                ///< of events
  std::vector<Process> processes_;              ///< by member
  std::map<std::pair<int, int>, int> members_;  ///< by launch and slot
};

}  // namespace ddl::launcher
