// Compares the clock of this rank's events with that of a rank of another host, by round trips over their control
// connection, while a timeline is recorded.
#pragma once

#include <cstdint>
#include <limits>

#include "runtime/src/common/event_log.h"

namespace ddl::runtime {

/// A comparison is several round trips, of which the shortest counts: the other clock was read somewhere between its
/// ends, so the offset is at most wrong by half of it. One thread, the watching one.
class ClockComparison {
 public:
  /// log outlives this. peer: the rank of the job whose clock is compared.
  ClockComparison(EventLog& log, int peer) : log_(log), peer_(peer) {}

  /// A comparison begins: the time to be sent with the first question.
  std::int64_t begin();
  /// An answer: the time that was sent with the question, and that of the other clock. Returns whether another question
  /// is to follow, with the time next().
  bool add_answer(std::int64_t asked, std::int64_t answered);
  std::int64_t next() { return asked_ = log_.exact_now(); }

 private:
  static constexpr int kRoundTrips = 16;

  EventLog& log_;
  int peer_;
  std::int64_t asked_ = 0;  ///< with the question that has not been answered; 0: there is none
  int left_ = 0;
  contract::ClockSample best_;
};

}  // namespace ddl::runtime
