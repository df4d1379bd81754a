// Notices that ranks of this node wait too long: in a call of libddl, or for a named tensor.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/job/rank_activity.h"
#include "launcher/node/rank_records.h"

namespace ddl::launcher {

/// Compares what ranks show with what they showed before: they show no times, since that would cost them a look at the
/// clock in every call. So durations are those between looks. Does no I/O. One thread.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    double warning_seconds = 60;  ///< how long a wait is no stall; 0: for ever, unless the next one is given
    double shutdown_seconds = 0;  ///< after which the job is to end; 0: never
  };
  explicit StallWatch(Limits limits) : limits_(limits) {}

  /// Whether any wait is a stall.
  bool has_limits() const { return limits_.warning_seconds > 0 || limits_.shutdown_seconds > 0; }
  /// How often to look, if so.
  std::chrono::milliseconds pause() const;
  /// What the rank does, from a snapshot of it. pid and is_stopped are left to the caller.
  RankActivity look(int rank, const RankSnapshot& now, Clock::time_point time);
  /// After a look at every rank: how long the longest wait has lasted, if that is to be reported. Each stall is
  /// reported when it becomes one, again after each doubling of its length, and when the job is to end.
  std::optional<double> due(const std::vector<RankActivity>& ranks);

 private:
  /// One thing that a rank shows, and since when it has been so.
  struct Shown {
    std::uint64_t value = 0;
    Clock::time_point since;
    bool is_current = false;
  };
  /// What is shown: the generation of a set, and which of its streams of calls; or a tensor.
  using Key = std::pair<std::uint64_t, int>;
  struct Rank {
    std::map<Key, Shown> shown;
    Clock::time_point last_change;
  };
  double seconds_of(Rank& rank, Key key, std::uint64_t value, Clock::time_point time);

  Limits limits_;
  std::map<int, Rank> ranks_;
  double reported_ = 0;  ///< the length of the stall when it was reported; 0: there is none
};

}  // namespace ddl::launcher
