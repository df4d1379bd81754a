// Writes the timeline of a job: what all ranks have recorded, in one file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/head/event_collector.h"
#include "timeline/clock.h"
#include "timeline/trace_file.h"

namespace ddl::launcher {

/// A rank as a timeline names it.
struct TimelineRank {
  std::string host;
  int node = 0;  ///< ranks of one node share a clock
};

/// One file. First asks all ranks for their clocks, since times of different hosts cannot be compared without, and then
/// for their events, of which those of a few ranks are in memory at a time. One thread.
class TimelineRecorder {
 public:
  struct Actions {
    std::function<bool(const message::AskEvents&)> ask;  ///< see EventCollector
    /// The process of the rank (0: unknown), and why it has not ended its events ("": it runs).
    std::function<std::pair<std::int64_t, std::string>(int rank)> fate_of;
    std::function<void(const std::string&)> note;
  };
  struct Settings {
    std::string path;             ///< absolute
    std::uint64_t max_bytes = 0;  ///< of the file before it is compressed
    std::int64_t first_id = 0;    ///< this and the next number are for its collectors (EventCollector)
    std::vector<TimelineRank> ranks;
  };
  /// Checks that the file can be written.
  static Result<std::unique_ptr<TimelineRecorder>> create(EventLoop& loop, Settings settings,
                                                          Actions actions);

  /// Writes the file, and calls done() with "", or with why there is none. Once.
  void write(std::function<void(const std::string& failure)> done);
  /// Something was recorded, and should be in the file. Once write() has called done().
  bool has_events() const { return has_events_; }

  void on_events(const message::Events& piece);
  void on_lost(int node, const std::string& why);

 private:
  TimelineRecorder(EventLoop& loop, timeline::TraceFile file, Settings settings, Actions actions);
  void collect(std::int64_t latest, std::function<void(CollectedEvents&&)> on_rank,
               std::function<void()> on_done);
  void begin_file();
  void add(CollectedEvents&& events);
  void finish();
  void end(const std::string& failure);

  EventLoop& loop_;
  timeline::TraceFile file_;
  std::uint64_t max_bytes_;
  std::int64_t next_id_;
  std::vector<TimelineRank> ranks_;
  Actions actions_;
  std::optional<EventCollector> collector_;
  std::vector<timeline::HostClock> clocks_;  ///< by node
  std::optional<timeline::JobClocks> aligned_;
  bool has_events_ = false;
  std::string missing_;  ///< why there is nothing of some rank
  std::function<void(const std::string&)> done_;
  std::string failure_;
};

}  // namespace ddl::launcher
