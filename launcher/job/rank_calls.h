// What a rank has done by libddl so far, added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"

namespace ddl::launcher {

/// All calls of libddl of one kind that a rank has made, in all process sets.
struct CallSum {
  std::string kind;       ///< "allreduce"
  bool is_named = false;  ///< for named tensors, which the program does not wait for by these calls
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< of this rank: the number of elements times their size
  Seconds seconds;         ///< inside of these calls
  Seconds wait_seconds;    ///< of these, asleep until the other ranks had made the call, too
  bool operator==(const CallSum&) const = default;
};

/// How long a rank has slept in calls of libddl until another one had made the call, too.
struct AwaitedRank {
  int rank = 0;  ///< the other one
  Seconds seconds;
  bool operator==(const AwaitedRank&) const = default;
};

/// What a rank has done by libddl.
struct RankCalls {
  /// Of a job of at most as many ranks, all are kept that a rank has waited for; of a larger one, kMostLate.
  static constexpr std::size_t kMaxAwaited = 64;
  static constexpr std::size_t kMostLate = 8;

  std::vector<CallSum> sums;  ///< by kind, those in order first
  /// How long the program has waited for named tensors. Its own thread may have executed them, or libddl's.
  Seconds tensor_wait_seconds;
  std::int64_t steps = 0;  ///< of named tensors: those that came again began the next one
  Seconds
      step_seconds;  ///< the mean from the end of one step to that of the next; 0: there were fewer than two
  std::vector<AwaitedRank> awaited;  ///< the longest wait first
  bool operator==(const RankCalls&) const = default;
};

/// What is told of the rank now, if before was told of it: no sum of wait_seconds falls, and no rest of seconds. A wait is
/// known while its call goes on, and counts when that has ended. Sums that are less than before are those of another
/// process, and are told as they are. Pure.
RankCalls without_fall(RankCalls now, const RankCalls& before);

}  // namespace ddl::launcher
