// What the ranks of a node have recorded, for the head: pieces of copies of their rings, and numbers from them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include "launcher/job/rank_activity.h"
#include "launcher/node/rank_records.h"
#include "launcher/protocol/event_messages.h"

namespace ddl::launcher {

/// One thread.
class RecordedEvents {
 public:
  /// local_ranks: whose rings are in records, which outlives this.
  RecordedEvents(RankRecords& records, std::size_t local_ranks)
      : records_(records), local_ranks_(local_ranks) {}

  /// The next piece of what this rank has recorded.
  message::Events answer(const message::AskEvents& ask, std::size_t local_rank);
  /// All ranks record a timeline from now on, or no longer.
  void record_timeline(std::int64_t events);
  /// The rank's process has ended: its last event was before.
  void has_ended(std::size_t local_rank);

  /// What else is known of a rank's times.
  struct Since {
    std::int64_t phase = 0;  ///< RankSnapshot::phase_since
    /// No duration begins before that: a wait in which the whole job was stopped is none.
    std::chrono::steady_clock::time_point watched;
  };
  /// Adds when the rank's last event was, and how fast its steps are; and lengthens what it does by the time in which
  /// nobody has looked, as far as its latest events say when that began.
  void add_to(RankActivity& activity, std::size_t local_rank, const Since& since);

 private:
  /// Made at the first question of an id, and kept until the last piece of it was given.
  struct Copy {
    std::int64_t id = -1;
    std::int64_t now = 0, earliest = 0;  ///< see message::Events
    timeline::RingSnapshot ring;
  };
  struct StepsSeen {
    std::chrono::steady_clock::time_point at;
    std::uint64_t steps = 0;
    double rate = -1;  ///< below 0: unknown
  };
  Copy copy_of(const message::AskEvents& ask, std::size_t local_rank) const;
  void add_steps(RankActivity& activity, std::size_t local_rank, std::uint64_t steps,
                 std::chrono::steady_clock::time_point now);

  RankRecords& records_;
  std::size_t local_ranks_;
  // By local rank.
  std::map<std::size_t, Copy> copies_;
  std::map<std::size_t, std::uint64_t> before_timeline_;  ///< the number of events
  std::map<std::size_t, std::int64_t> ended_;             ///< when, in nanoseconds
  std::map<std::size_t, StepsSeen> steps_;
};

}  // namespace ddl::launcher
