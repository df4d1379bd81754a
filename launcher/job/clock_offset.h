// How far the clock of a host is from that of the head's host, as the times of one question tell.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/deadline.h"

namespace ddl::launcher {

/// Of this host: nanoseconds since 1970.
inline std::int64_t wall_time_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// When a question was answered, by the clock of who answers; the time between does not count as latency.
struct AnswerTimes {
  std::int64_t received_ns = 0;  ///< the question; 0: not known
  std::int64_t sent_ns = 0;      ///< the answer
  bool operator==(const AnswerTimes&) const = default;
};

struct ClockOffset {
  double seconds = 0;  ///< its clock minus that of the head's host
  double bound = -1;   ///< the offset may be wrong by as much; below 0: it is not known
  bool operator==(const ClockOffset&) const = default;
};

/// As NTP finds it (RFC 5905, section 8): neither way has taken less than no time. asked_ns and answered_ns: when the
/// question was sent and the answer had come, by the clock of the head's host. Not known if a clock was set meanwhile so
/// that the times contradict each other. Pure.
inline ClockOffset clock_offset(std::int64_t asked_ns, const AnswerTimes& times, std::int64_t answered_ns) {
  constexpr double kNanoseconds = 1e9;
  if (times.received_ns <= 0 || times.sent_ns < times.received_ns) return {};
  const auto highest = static_cast<double>(times.received_ns - asked_ns) / kNanoseconds;
  const auto lowest = static_cast<double>(times.sent_ns - answered_ns) / kNanoseconds;
  if (highest < lowest) return {};
  // More than 30 years are those of a clock that was never set.
  return {std::clamp((highest + lowest) / 2, -kMaxSeconds, kMaxSeconds),
          std::min((highest - lowest) / 2, kMaxSeconds)};
}

}  // namespace ddl::launcher
