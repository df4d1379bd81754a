// What a rank has recorded last, for the report of a failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/event_ring.h"

namespace ddl::launcher {

struct RankHistory {
  /// Events that are kept of each rank.
  static constexpr std::int64_t kEvents = 32;

  int rank = 0;
  std::int64_t now = 0;                 ///< when it was read, by the clock of the events, in nanoseconds
  std::vector<contract::Event> events;  ///< in the order in which they began
  std::int64_t joining_since = 0;       ///< see message::Events
};

/// What the rank was in, without how long: "allreduce #812", "ddl_init", "a wait for tensor "x"", "user code after
/// allreduce #811"; "" if it has recorded nothing. seconds: for so long. Pure.
std::string last_work(const RankHistory& history, double& seconds);

/// A sentence for each kind of work, with the ranks that did it: "ranks 0, 2 were in barrier #7 for 0.4 s". Pure.
std::vector<std::string> last_work_sentences(const std::vector<RankHistory>& histories);

}  // namespace ddl::launcher
